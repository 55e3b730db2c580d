import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import type { ReportBody } from '#wire/node/report.ts'
import type { Report } from './report.ts'
import { openOutbox, type Outbox } from './outbox.ts'

const report = (label: number): Report => ({ at: String(label) }) as unknown as Report
const never = new AbortController().signal

/** Takes reports as a plane does: each number once, whichever channel it comes over. */
const takingPlane = () => {
  const taken: ReportBody[] = []
  return {
    taken,
    take: (body: ReportBody): number => {
      const last = taken.at(-1)?.number ?? 0
      if (body.number > last) taken.push(body)
      return taken.at(-1)?.number ?? 0
    },
  }
}

const filled = (count: number, use: (outbox: Outbox) => void) => {
  const dropped = { no_channel: 0, plane_behind: 0 }
  const outbox = openOutbox('me', (more, why) => (dropped[why] += more))
  use(outbox)
  for (let label = 1; label <= count; label += 1) outbox.post(report(label))
  return { outbox, dropped }
}

test('what is not acknowledged is sent again over the next channel, in order, and nothing that is', () => {
  const first: number[] = []
  const second: number[] = []
  const { outbox } = filled(5, (box) => box.use(({ number }) => first.push(number)))
  outbox.acknowledge('me', 2)
  outbox.use(({ number }) => second.push(number))
  outbox.post(report(6))
  assert.deepEqual(first, [1, 2, 3, 4, 5])
  assert.deepEqual(second, [3, 4, 5, 6])
  assert.deepEqual(outbox.counts(), { sent: 6, acknowledged: 2 })
})

test('while there is no channel the latest report stands for all, and numbers have no gap', () => {
  const sent: ReportBody[] = []
  const { outbox, dropped } = filled(10, () => {})
  outbox.use((body) => sent.push(body))
  assert.deepEqual(
    sent.map(({ number, at }) => [number, at]),
    [[1, '10']],
  )
  assert.deepEqual(dropped, { no_channel: 9, plane_behind: 0 })
})

test('a plane that acknowledges nothing does not fill the memory', () => {
  const sent: number[] = []
  const { outbox, dropped } = filled(1_000, (box) => box.use(({ number }) => sent.push(number)))
  assert.equal(sent.length, 32)
  assert.deepEqual(dropped, { no_channel: 0, plane_behind: 1_000 - 64 })
  outbox.acknowledge('me', 32)
  assert.equal(sent.length, 64)
  assert.deepEqual(outbox.counts(), { sent: 64, acknowledged: 32 })
})

test('an acknowledgement of another process, of less than before or of more than was sent changes nothing', () => {
  const { outbox } = filled(3, (box) => box.use(() => {}))
  outbox.acknowledge('me', 2)
  outbox.acknowledge('other', 3)
  outbox.acknowledge('me', 1)
  outbox.acknowledge('me', 4)
  assert.deepEqual(outbox.counts(), { sent: 3, acknowledged: 2 })
})

test('it is settled when all reports sent are acknowledged, or when there is no channel', async () => {
  const { outbox } = filled(2, (box) => box.use(() => {}))
  let isSettled = false
  const settled = outbox.settled(never).then(() => (isSettled = true))
  outbox.post(report(3))
  outbox.acknowledge('me', 1)
  await Promise.resolve()
  assert.equal(isSettled, false)
  outbox.acknowledge('me', 2)
  await settled
  const nobody = outbox.settled(never)
  outbox.use(null)
  await nobody
  const stopped = new AbortController()
  outbox.use(() => {})
  const waiting = outbox.settled(stopped.signal)
  stopped.abort()
  await waiting
})

type Happening = 'post' | 'next channel' | 'no channel' | 'frame arrives' | 'answer arrives' | 'cut'

test('whatever is lost on the way, a plane that counts each number once takes all of them, in order, none twice', () => {
  const happenings = fc.array(
    fc.constantFrom<Happening>('post', 'next channel', 'no channel', 'frame arrives', 'answer arrives', 'cut'),
    { maxLength: 200, size: 'max' },
  )
  fc.assert(
    fc.property(happenings, (events) => {
      const plane = takingPlane()
      const outbox = openOutbox('me', () => {})
      // Two channels at most: the one in use and the one before it, which still delivers what it holds.
      let [frames, olderFrames]: [ReportBody[], ReportBody[]] = [[], []]
      let answers: number[] = []
      let label = 0
      const nextChannel = (): void => {
        olderFrames = frames
        const mine: ReportBody[] = []
        frames = mine
        outbox.use((body) => mine.push(body))
      }
      const arrives = (): void => {
        const body = label % 2 === 0 ? (olderFrames.shift() ?? frames.shift()) : (frames.shift() ?? olderFrames.shift())
        if (body !== undefined) answers.push(plane.take(body))
      }
      const answered = (): void => {
        const number = answers.shift()
        if (number !== undefined) outbox.acknowledge('me', number)
      }
      for (const event of events) {
        if (event === 'post') outbox.post(report(++label))
        if (event === 'next channel') nextChannel()
        if (event === 'no channel') outbox.use(null)
        if (event === 'frame arrives') arrives()
        if (event === 'answer arrives') answered()
        if (event === 'cut') [frames, olderFrames, answers] = [[], [], []]
      }
      outbox.post(report(++label))
      nextChannel()
      while (frames.length + olderFrames.length + answers.length > 0) {
        arrives()
        answered()
      }
      const numbers = plane.taken.map(({ number }) => number)
      assert.deepEqual(
        numbers,
        numbers.map((_, index) => index + 1),
      )
      const labels = plane.taken.map(({ at }) => Number(at))
      assert.deepEqual(
        labels,
        labels.toSorted((a, b) => a - b),
      )
      assert.equal(plane.taken.at(-1)?.at, String(label), 'the latest arrived')
      assert.deepEqual(outbox.counts(), { sent: numbers.length, acknowledged: numbers.length })
    }),
    { numRuns: 500 },
  )
})
