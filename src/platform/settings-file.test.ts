import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import { test } from 'node:test'
import { asEnvironment, resolveSettings, type Given } from './given-settings.ts'
import { listSetting, numberSetting, pathSetting, settingHelp, switchSetting, textSetting } from './setting.ts'
import { parseSettingsFile, readSettingsFile } from './settings-file.ts'

const about = { value: 'x', takes: 'letters', meaning: 'Some letters', change: 'Seldom.' }
const letters = (text: string): string | null => (/^[a-z]+$/.test(text) ? text : null)

const settings = {
  someWord: textSetting(letters, 'word', { ...about, variable: 'SOME_WORD' }),
  aFile: pathSetting(null, { ...about, variable: 'A_FILE' }),
  howMany: numberSetting({ least: 1, most: 9 }, '1', { ...about, variable: null }),
  isOn: switchSetting({ ...about, variable: 'IS_ON' }),
  words: listSetting(letters, 'a,b', { ...about, variable: 'WORDS' }),
}

const read = (text: string) => parseSettingsFile('/etc/some.toml', text, settings)
const resolve = (given: Partial<Given>) => resolveSettings(settings, { options: {}, env: {}, file: null, ...given })

test('an option goes before a variable, that before the file, and that before the default', () => {
  const file = read('some_word = "filed"\n')
  const env = { SOME_WORD: 'environ' }
  const found = (given: Partial<Given>) => {
    const { value, source } = resolve(given).values.someWord
    return [value, source.from]
  }
  assert.deepEqual(found({ options: { someWord: 'optional' }, env, file }), ['optional', 'option'])
  assert.deepEqual(found({ env, file }), ['environ', 'environment'])
  assert.deepEqual(found({ file }), ['filed', 'file'])
  assert.deepEqual(found({}), ['word', 'default'])
})

test('a variable that is set and empty is an error, and no default takes its place', () => {
  assert.deepEqual(resolve({ env: { SOME_WORD: '', WORDS: '', IS_ON: '' } }).problems, [
    '--some-word (SOME_WORD) is empty; it takes letters',
    '--words (WORDS) is empty; it takes letters',
  ])
})

test('every kind of setting is read from each place', () => {
  const file = read('a_file = "keys/one"\nhow_many = 3\nis_on = true\nwords = ["x", "y"]\n')
  assert.deepEqual(file.problems, [])
  const filed = resolve({ file }).values
  assert.equal(filed.aFile.value, '/etc/keys/one')
  assert.deepEqual(filed.aFile.source, { from: 'file', file: '/etc/some.toml', line: 1 })
  assert.deepEqual([filed.howMany.value, filed.isOn.value, filed.words.value], [3, true, ['x', 'y']])
  const given = resolve({ options: { isOn: true, howMany: '4' }, env: { WORDS: 'x, y', A_FILE: 'one' } }).values
  assert.deepEqual(
    [given.howMany.value, given.isOn.value, given.words.value, given.aFile.value],
    [4, true, ['x', 'y'], 'one'],
  )
  assert.deepEqual(resolve({}).values.words.value, ['a', 'b'])
  assert.equal(resolve({ env: { IS_ON: '0' }, file }).values.isOn.value, false)
  assert.deepEqual(resolve({ file: read('words = "x"') }).values.words.value, ['x'])
})

test('all that is wrong is named at once, each by the place it came from', () => {
  const file = read('some_word = "Filed"\nhow_many = 12\nwords = ["x", "Y"]')
  assert.deepEqual(resolve({ file }).problems, [
    '/etc/some.toml line 1: some_word takes letters, not Filed',
    '/etc/some.toml line 2: how_many takes a number from 1 to 9, not 12',
    '/etc/some.toml line 3: words takes letters, not x, Y',
  ])
  const { problems } = resolve({ options: { howMany: 'x' }, env: { SOME_WORD: 'Environ', IS_ON: 'yes' } })
  assert.deepEqual(problems, [
    '--some-word (SOME_WORD) takes letters, not Environ',
    '--how-many takes a number from 1 to 9, not x',
    '--is-on (IS_ON) takes true or false (as a variable also 1 or 0), not yes',
  ])
})

test('what a file has that is unknown or of another type is named with its line, and with what was probably meant', () => {
  const wrong: [text: string, problem: string][] = [
    ['\nsome_wrod = "x"', 'line 2: some_wrod is unknown; did you mean some_word?'],
    ['some-word = "x"', 'line 1: some-word is unknown; did you mean some_word?'],
    ['zzz = 1', 'line 1: zzz is unknown; known are some_word, a_file, how_many, is_on, words'],
    ['[words]\nx = 1', 'line 1: words is written as a list of texts: words = ["...", "..."]'],
    ['[other]\nx = 1', 'line 1: [other] is a table, and there are none here: write KEY = VALUE'],
    ['how_many = "3"', 'line 1: how_many is written as a whole number: how_many = 1'],
    ['is_on = 1', 'line 1: is_on is written as true or false: is_on = true'],
    ['some_word = true', 'line 1: some_word is written as a text in quotes: some_word = "..."'],
    ['a_file = ""', 'line 1: a_file is written as a text in quotes: a_file = "..."'],
    ['words = ["x", 1]', 'line 1: words is written as a list of texts: words = ["...", "..."]'],
    ['some_word = "x"\nsome_word = "y"', 'line 2: some_word is there twice'],
    ['some_word', 'line 1: expected ='],
  ]
  for (const [text, problem] of wrong) {
    assert.deepEqual(read(text).problems, [`/etc/some.toml ${problem}`])
  }
})

test('a file that is named has to be there; the usual one may be missing; off means none', (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-settings-'))
  t.after(() => fs.rmSync(folder, { recursive: true }))
  const file = path.join(folder, 'some.toml')
  assert.equal(readSettingsFile(undefined, file, settings), null)
  assert.deepEqual(readSettingsFile(file, '/nowhere', settings)?.problems, [`${file} does not exist`])
  fs.writeFileSync(file, 'how_many = 2\n', { mode: 0o644 })
  assert.deepEqual(readSettingsFile(undefined, file, settings)?.entries.get('howMany'), { line: 1, texts: ['2'] })
  assert.equal(readSettingsFile('off', file, settings), null)
})

test('a file that others can write is not read', (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-settings-'))
  t.after(() => fs.rmSync(folder, { recursive: true }))
  const file = path.join(folder, 'some.toml')
  fs.writeFileSync(file, 'how_many = 2\n')
  fs.chmodSync(file, 0o664)
  const found = readSettingsFile(file, '/nowhere', settings)
  assert.match(found?.problems.join() ?? '', /can be written by other users than its owner \(mode 664\): chmod go-w/)
  assert.equal(found?.entries.size, 0)
})

test('a file in a folder that others can write is not read, also not through a link', (t) => {
  const top = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'muster-settings-')))
  t.after(() => fs.rmSync(top, { recursive: true }))
  const [folder, link] = [path.join(top, 'folder'), path.join(top, 'link.toml')]
  const file = path.join(folder, 'some.toml')
  fs.mkdirSync(folder)
  fs.writeFileSync(file, 'how_many = 2\n', { mode: 0o644 })
  fs.symlinkSync(file, link)
  const problemsOf = (place: string) => readSettingsFile(place, '/nowhere', settings)?.problems
  for (const [mode, says] of [
    [0o755, null],
    [0o775, 'can be written by other users than its owner (mode 775)'],
    // Others can add files there, and not move those of this user.
    [0o1777, null],
  ] as const) {
    fs.chmodSync(folder, mode)
    for (const place of [file, link])
      assert.deepEqual(
        problemsOf(place),
        says === null ? [] : [`${place} could be replaced by another user: ${folder} ${says}`],
      )
  }
})

test('a pipe and a folder are refused, and keep nobody waiting', (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-settings-'))
  t.after(() => fs.rmSync(folder, { recursive: true }))
  const pipe = path.join(folder, 'pipe')
  execFileSync('mkfifo', ['-m', '600', pipe])
  for (const place of [pipe, folder])
    assert.deepEqual(readSettingsFile(place, '/nowhere', settings)?.problems, [`${place} is not a file`])
})

test('the variables of a process that has the same values leave nothing to options and files', () => {
  const file = read('some_word = "filed"\nwords = ["x", "y"]\nis_on = true')
  const { values } = resolve({ file, options: { aFile: '/one' } })
  assert.deepEqual(asEnvironment(settings, values), {
    SOME_WORD: 'filed',
    A_FILE: '/one',
    IS_ON: 'true',
    WORDS: 'x,y',
  })
})

test('help names the default and the variable', () => {
  assert.equal(settingHelp(settings.someWord), 'some letters (default: word; SOME_WORD)')
  assert.equal(settingHelp(settings.isOn), 'some letters (IS_ON)')
})

test('the usual file in a folder that this user cannot enter is a fault, except for who says that there is none then', (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-settings-'))
  const [closed, open] = [path.join(folder, 'closed'), path.join(folder, 'open')]
  t.after(() => {
    fs.chmodSync(closed, 0o700)
    fs.rmSync(folder, { recursive: true })
  })
  for (const place of [closed, open]) {
    fs.mkdirSync(place)
    fs.writeFileSync(path.join(place, 'some.toml'), 'how_many = 2\n', { mode: 0o000 })
  }
  fs.chmodSync(folder, 0o711)
  fs.chmodSync(closed, 0o000)
  const read = `
    import { readSettingsFile } from ${JSON.stringify(path.resolve('src/platform/settings-file.ts'))}
    if (process.geteuid() === 0) process.seteuid(65534)
    const found = (named, usual, closed) => readSettingsFile(named, usual + '/some.toml', {}, closed)
    const [closed, open] = ${JSON.stringify([closed, open])}
    const problems = [
      found(undefined, closed)?.problems,
      found(undefined, closed, 'has no file'),
      found(undefined, open, 'has no file')?.problems,
      found(closed + '/some.toml', '', 'has no file')?.problems,
    ]
    console.log(JSON.stringify([process.geteuid(), ...problems]))`
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', read], { encoding: 'utf8' })
  const unreadable = (place: string) => [`${place}/some.toml cannot be read: EACCES`]
  const [uid, ...problems] = JSON.parse(stdout) as unknown[]
  const fault = `cannot be looked for: user ${String(uid)} may not enter ${closed}; allow it, or start with --config off`
  assert.deepEqual(problems, [[`${closed}/some.toml ${fault}`], null, unreadable(open), unreadable(closed)])
})
