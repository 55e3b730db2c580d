import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { test, type TestContext } from 'node:test'
import { openPrivateLines, type PrivateLines } from './private-lines.ts'

const folderOf = (t: TestContext): string => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-lines-'))
  t.after(() => fs.rmSync(folder, { recursive: true }))
  return folder
}

const opened = (file: string): PrivateLines => {
  const lines = openPrivateLines(file, 1000)
  if (typeof lines === 'string') assert.fail(lines)
  return lines
}

test('a file is made for its owner only, whatever the umask, and has what was appended', (t) => {
  const file = path.join(folderOf(t), 'tokens')
  const before = process.umask(0)
  t.after(() => process.umask(before))
  const first = opened(file)
  assert.deepEqual(first.lines, [])
  assert.equal(fs.statSync(file).mode & 0o7777, 0o600)
  first.append('one\n')
  first.append('two\nthree\n')
  first.close()
  const again = opened(file)
  assert.deepEqual(again.lines, ['one', 'two', 'three'])
  again.close()
})

test('a line that was cut off is removed, and the next one stands alone', (t) => {
  const file = path.join(folderOf(t), 'tokens')
  fs.writeFileSync(file, 'one\nöne and a ha', { mode: 0o600 })
  const lines = opened(file)
  assert.deepEqual(lines.lines, ['one'])
  lines.append('two\n')
  lines.close()
  assert.equal(fs.readFileSync(file, 'utf8'), 'one\ntwo\n')
})

/** In a process whose files may have 1 KiB at most, which is as a disk that is full. `tell` says what an append came to. */
const onFullDisk = (file: string, script: string): unknown => {
  const program = `
    import fs from 'node:fs'
    import { syncBuiltinESMExports } from 'node:module'
    import { openPrivateLines } from ${JSON.stringify(path.resolve('src/platform/private-lines.ts'))}
    const lines = openPrivateLines(${JSON.stringify(file)}, 1000)
    const said = []
    const tell = (text) => { try { lines.append(text); said.push('appended') } catch (error) { said.push(error.code ?? error.message) } }
    ${script}
    console.log(JSON.stringify(said))`
  const command = ['-c', 'ulimit -f 1 && exec "$@"', 'bash', process.execPath, '--input-type=module', '-e', program]
  const { stdout, stderr } = spawnSync('bash', command, { encoding: 'utf8' })
  assert.notEqual(stdout, '', stderr)
  return JSON.parse(stdout)
}

test('of a line for which there is no room nothing stays, and the next one stands alone', (t) => {
  const file = path.join(folderOf(t), 'tokens')
  const said = onFullDisk(file, `tell('one\\n'); tell('x'.repeat(5000) + '\\n'); tell('two\\n')`)
  assert.deepEqual(said, ['appended', 'EFBIG', 'appended'])
  assert.equal(fs.readFileSync(file, 'utf8'), 'one\ntwo\n')
})

test('where part of a line cannot be removed, nothing more is appended', (t) => {
  const file = path.join(folderOf(t), 'tokens')
  const script = `
    fs.ftruncateSync = () => { throw new Error('no') }
    syncBuiltinESMExports()
    tell('x'.repeat(5000) + '\\n'); tell('two\\n')`
  const said = onFullDisk(file, script)
  assert.deepEqual(said, ['EFBIG', 'the file ends in part of a line, and another one would be joined to it'])
  assert.match(fs.readFileSync(file, 'utf8'), /^x+$/)
})

test('no file that others can read, a link, a folder, a pipe or too long a file is opened', (t) => {
  const folder = folderOf(t)
  const file = (name: string): string => path.join(folder, name)
  fs.writeFileSync(file('readable'), '', { mode: 0o640 })
  fs.writeFileSync(file('own'), '', { mode: 0o600 })
  fs.symlinkSync(file('own'), file('link'))
  fs.symlinkSync(file('nothing'), file('dangling'))
  fs.mkdirSync(file('folder'), { mode: 0o700 })
  execFileSync('mkfifo', ['-m', '600', file('pipe')])
  fs.writeFileSync(file('long'), 'x'.repeat(1001), { mode: 0o600 })
  const faults = {
    readable: 'can be read by others',
    link: 'is a symbolic link',
    dangling: 'is a symbolic link',
    folder: 'is not a file',
    pipe: 'is not a file',
    long: 'is too long',
  }
  for (const [name, fault] of Object.entries(faults)) assert.equal(openPrivateLines(file(name), 1000), fault, name)
  assert.ok(!fs.existsSync(file('nothing')))
})

test('a file that is in use is not opened again before it is closed', (t) => {
  const file = path.join(folderOf(t), 'tokens')
  const first = opened(file)
  assert.equal(openPrivateLines(file, 1000), 'is in use')
  first.close()
  const second = opened(file)
  second.close()
})
