// A plane that cannot have one of its ports has to end: half a plane would look alive to the supervisor that started it.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import * as net from 'node:net'
import * as path from 'node:path'
import { test } from 'node:test'
import { runMuster } from '../process/run-muster.ts'
import { tempFolder } from '../process/temp-folder.ts'

const doors = ['--node-listen', '--recovery-listen', '--operator-listen', '--status-listen']

for (const taken of doors) {
  test(`a plane whose ${taken} is taken says so and ends`, async (t) => {
    const holder = net.createServer()
    await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve))
    t.after(() => holder.close())
    const { port } = holder.address() as net.AddressInfo
    const data = path.join(tempFolder(t), 'data')
    const listen = doors.flatMap((door) => [door, `127.0.0.1:${door === taken ? port : 0}`])
    const { code, stderr } = await runMuster(['plane', '--data', data, ...listen], { withinMs: 30_000 })
    assert.equal(code, 78, stderr)
    assert.match(stderr, new RegExp(`ADDRESS_IN_USE[^]*\\(${taken}\\)[^]*listen elsewhere: ${taken} HOST:PORT`))
    assert.ok(!fs.existsSync(data))
  })
}
