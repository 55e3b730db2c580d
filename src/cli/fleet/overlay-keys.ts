// What may be in the document of a vCluster or an overlay: every key, in words and as a schema, and how people write its value.

import type { TSchema } from 'typebox'
import { bytes, milliseconds, mode, type Reader } from '#cli/kit/written-values.ts'
import { OverlayRequest } from '#wire/fleet/overlay-document.ts'
import { VClusterSettings } from '#wire/fleet/vcluster-api.ts'

export type Field =
  | { readonly kind: 'value'; readonly schema: TSchema; readonly takes: string; readonly read?: Reader }
  | { readonly kind: 'list'; readonly of: Fields }
  | { readonly kind: 'object'; readonly of: Fields }
  /** Checked by the plane. */
  | { readonly kind: 'setting' }
export type Fields = Readonly<Record<string, Field>>

const ofFile = OverlayRequest.properties.files.items.properties
const ofService = OverlayRequest.properties.services.items.properties
const ofCheck = OverlayRequest.properties.checks.items.properties

const value = (schema: TSchema, takes: string, read?: Reader): Field => ({
  ...{ kind: 'value', schema, takes },
  ...(read !== undefined && { read }),
})

const command = 'takes a program and its arguments as a list, without a shell, such as [/usr/bin/app, -v]'
const name = 'takes lower-case letters, digits and dashes, at most 63'

export const overlayKeys: Fields = {
  files: {
    kind: 'list',
    of: {
      path: value(
        ofFile.path,
        'takes a relative path such as etc/app.conf, of letters, digits, dots, dashes and underscores',
      ),
      mode: value(ofFile.mode, 'takes octal permissions from 0400 to 0777, such as 0644', mode),
      content: value(ofFile.content, 'takes text of at most 40000 characters'),
      template: value(ofFile.template, 'takes true or false'),
    },
  },
  services: {
    kind: 'list',
    of: {
      name: value(ofService.name, name),
      command: value(ofService.command, command),
      user: value(ofService.user, 'takes the name of a user other than root'),
      environment: value(
        ofService.environment,
        'takes names and values, both text, of at most 32 variables; those of MUSTER_ are set by the agent',
      ),
      workingDirectory: value(ofService.workingDirectory, 'takes a path that begins with / or {overlay}'),
      restart: value(ofService.restart, 'takes always, on-failure or never'),
      limits: {
        kind: 'object',
        of: {
          memoryBytes: value(
            ofService.limits.properties.memoryBytes,
            'takes bytes, or a size such as 512MiB, of at least 1MiB',
            bytes,
          ),
          cpus: value(ofService.limits.properties.cpus, 'takes a number of processors such as 1.5'),
          openFiles: value(ofService.limits.properties.openFiles, 'takes a whole number of at least 16'),
        },
      },
      template: value(ofService.template, 'takes true or false'),
    },
  },
  checks: {
    kind: 'list',
    of: {
      name: value(ofCheck.name, name),
      command: value(ofCheck.command, command),
      intervalMs: value(ofCheck.intervalMs, 'takes a duration from 1s to 24h, such as 30s', milliseconds),
      timeoutMs: value(ofCheck.timeoutMs, 'takes a duration from 100ms, such as 10s', milliseconds),
    },
  },
}

const ofOutput = VClusterSettings.properties.outputs.items.properties
const byPlane: Field = { kind: 'setting' }

const outputs: Field = {
  kind: 'list',
  of: {
    name: byPlane,
    lifetimeMs: value(ofOutput.lifetimeMs, 'takes a duration such as 24h', milliseconds),
    keyType: byPlane,
    usage: byPlane,
    dns: byPlane,
    addresses: byPlane,
    files: {
      kind: 'object',
      of: {
        directory: byPlane,
        owner: byPlane,
        group: byPlane,
        keyMode: value(ofOutput.files.properties.keyMode, 'takes octal permissions, such as 0640', mode),
        combined: byPlane,
        pkcs12: byPlane,
        reload: byPlane,
      },
    },
  },
}

export const settingKeys: Fields = {
  name: byPlane,
  description: byPlane,
  peering: byPlane,
  closed: byPlane,
  policy: byPlane,
  outputs,
}
