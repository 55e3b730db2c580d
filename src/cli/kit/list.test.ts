import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parse } from 'yaml'
import { testCli } from '../../../test/fakes/test-cli.ts'
import type { GlobalOptions } from './cli.ts'
import { Failure } from './failure.ts'
import { showList, type Column, type ListOptions } from './list.ts'

type Machine = { readonly id: string; readonly load: number | null; readonly note: string }

const items: readonly Machine[] = [
  { id: 'b', load: 9, note: '' },
  { id: 'a', load: 10, note: 'says "hi", twice' },
  { id: 'c', load: null, note: 'x\u001b[A' },
]

const columns: readonly Column<Machine>[] = [
  { name: 'name', cell: ({ id }) => id },
  { name: 'load-now', cell: ({ load }) => (load === null ? '' : `${load} %`), value: ({ load }) => load },
  { name: 'note', cell: ({ note }) => note, wide: true },
]

const shown = (options: Partial<ListOptions>): string[] => {
  const { cli, stdout } = testCli({})
  showList(cli, { output: 'table', ...options }, { items, columns, body: (machines) => ({ machines }) })
  return stdout().trimEnd().split('\n')
}

const names = (options: Partial<ListOptions>): string => shown({ output: 'name', ...options }).join('')

test('a table has headers, a dash for what is empty, and the columns that are not wide', () => {
  assert.deepEqual(shown({}), ['NAME  LOAD NOW', 'b     9 %', 'a     10 %', 'c     -'])
  assert.deepEqual(shown({ headers: false }), ['b  9 %', 'a  10 %', 'c  -'])
  assert.equal(shown({ output: 'wide' })[0], 'NAME  LOAD NOW  NOTE')
  assert.deepEqual(shown({ columns: 'note,name' })[1], '-                 b')
})

test('sorting compares values and not their text, and what has none comes last', () => {
  assert.equal(names({}), 'bac')
  assert.equal(names({ sort: 'name' }), 'abc')
  assert.equal(names({ sort: 'load-now' }), 'bac')
  assert.equal(names({ sort: 'LOAD_NOW:desc' }), 'abc')
  assert.deepEqual(JSON.parse(shown({ output: 'json', sort: 'name:desc' }).join('')).machines[0].id, 'c')
})

test('a column that is not there is an error that names those that are', () => {
  for (const options of [{ columns: 'nmae' }, { sort: 'nmae' }]) {
    assert.throws(
      () => shown(options),
      (error) => error instanceof Failure && error.exit === 2 && /name, load-now, note/.test(error.message),
    )
  }
})

test('CSV quotes what needs it, holds values, and has the header unless told otherwise', () => {
  assert.deepEqual(shown({ output: 'csv', columns: 'name,load-now,note' }), [
    'name,load-now,note',
    'b,9,',
    'a,10,"says ""hi"", twice"',
    'c,,x\\x1b[A',
  ])
  assert.equal(shown({ output: 'csv', headers: false }).length, items.length)
})

test('no cell of CSV is a formula to a spreadsheet, and numbers stay numbers', () => {
  const csvOf = (note: string, load: number | null = null): string => {
    const { cli, stdout } = testCli({})
    const listing = { items: [{ id: 'a', load, note }], columns, body: (machines: unknown) => machines }
    showList(cli, { output: 'csv', columns: 'load-now,note', headers: false }, listing)
    return stdout().trimEnd()
  }
  assert.equal(csvOf('=1+1'), ",'=1+1")
  assert.equal(csvOf('@SUM(A1,A2)'), `,"'@SUM(A1,A2)"`)
  assert.equal(csvOf('+x'), ",'+x")
  assert.equal(csvOf('-x'), ",'-x")
  assert.equal(csvOf('\t=1'), ",'\\x09=1")
  assert.equal(csvOf('-1.5', -9), '-9,-1.5')
  assert.equal(csvOf('a=b'), ',a=b')
})

test('YAML is the value that JSON is, and nothing in it can move the cursor', () => {
  const text = shown({ output: 'yaml' }).join('\n')
  assert.deepEqual(parse(text), { machines: items })
  assert.ok(!text.includes('\u001b'))
})

test('an empty list prints nothing, and CSV its header', () => {
  const empty = (output: GlobalOptions['output']): string => {
    const { cli, stdout } = testCli({})
    showList(cli, { output }, { items: [], columns, body: (machines) => ({ machines }) })
    return stdout()
  }
  assert.deepEqual([empty('table'), empty('name'), empty('csv')], ['', '', 'name,load-now\n'])
})
