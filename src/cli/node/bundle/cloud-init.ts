// User data for cloud-init: the files of a bootstrap, and what to run. JSON strings are YAML strings, so nothing in a
// value can become structure.

import type { Bootstrap } from './bootstrap.ts'
import { installScript, type ServiceFiles } from './install-script.ts'

const scriptPath = '/run/muster-install.sh'

export const cloudInit = (bootstrap: Bootstrap, service: ServiceFiles): string =>
  [
    '#cloud-config',
    `# Muster: bootstrap of ${bootstrap.nodeId}. Holds a token that works once.`,
    'write_files:',
    ...file(scriptPath, installScript(bootstrap, service), '0700'),
    'runcmd:',
    `  - [sh, ${JSON.stringify(scriptPath)}]`,
    `  - [rm, "-f", ${JSON.stringify(scriptPath)}]`,
    '',
  ].join('\n')

const file = (path: string, content: string, permissions: string): string[] => [
  `  - path: ${JSON.stringify(path)}`,
  '    owner: "root:root"',
  `    permissions: ${JSON.stringify(permissions)}`,
  `    content: ${JSON.stringify(content)}`,
]
