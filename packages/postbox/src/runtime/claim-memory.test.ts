// What claims of a generation remember of the due lane. The rest is in claimer.test.ts.
import { expect, test } from 'vitest'
import type { MessageRow, QueueRow } from '../sql/claim-messages.ts'
import { createMemory, learn, wanted } from './claim-memory.ts'

const demands = [{ queue: 'orders', room: 3, leaseMs: 30_000 }]
const now = 60_000
const row: QueueRow = {
  ...{ kind: 'queue', queue: 'orders', own: '10', snapshot: '10:10:', top: '0' },
  ...{ nextdue: null, lowest: null, now: String(now), pause: null },
}

function messageOf(due: string | null, nth: number): MessageRow {
  return {
    ...{ kind: 'message', queue: 'orders', id: `id-${nth}`, seq: `${nth}`, key: null, timer: null, body: '' },
    ...{
      headers: null,
      attempts: '0',
      deliveries: '1',
      suspect: 'false',
      created: '0',
      first: null,
      generation: null,
      due,
    },
  }
}

/** From when on the next claim, and the next sweep, look for due messages, after one that came back so. */
function dueFromAfter(dueTimes: readonly (string | null)[], leavesNewer: boolean): readonly unknown[] {
  const memory = createMemory(0, leavesNewer)
  const messages = dueTimes.map(messageOf)
  const found = {
    row,
    fresh: messages.filter(({ due }) => due === null),
    due: messages.filter(({ due }) => due !== null),
    isFull: messages.length >= 3,
    leaseMs: 30_000,
    pause: null,
  }
  const asked = wanted(memory, demands, false)
  learn(memory, [found], { rows: [], asked, token: '', isSweep: false, sentAt: 0, receivedAt: 1 })
  return [false, true].map((isSweep) => wanted(memory, demands, isSweep)[0]?.dueFromMs)
}

test.each([
  ['nothing', [], now - 5_000],
  ['less than it had room for', ['20000'], now - 5_000],
  ['all it had room for, and some of it fresh, which comes last', ['20000', null, null], now - 5_000],
  ['all it had room for, and all of it due', ['20000', '21000', '22000'], 17_000],
])(
  'what was due at a claim that leaves newer messages is not looked at again after it found %s',
  (_, due, from) => {
    expect(dueFromAfter(due, true)).toEqual([from, null])
  },
)

test.each([
  ['nothing', [], null],
  ['less than it had room for', ['20000'], 15_000],
])('a claim that leaves none looks again from the last due time that it found: after %s', (_, due, from) => {
  expect(dueFromAfter(due, false)).toEqual([from, null])
})

test('a claim that found a queue paused has looked at nothing of it: the next one begins where the last one did', () => {
  const memory = createMemory(0, true)
  const asked = wanted(memory, demands, true)
  const nothing = { fresh: [], due: [], isFull: false, leaseMs: 30_000 }
  const pause = { isPaused: true, by: 'jo', at: new Date(0) }
  const learnAt = (own: number, isPaused: boolean): void => {
    const seen = { ...row, own: `${own}`, snapshot: `${own}:${own}:`, top: '1000' }
    const found = { ...nothing, row: seen, pause: isPaused ? pause : { ...pause, isPaused } }
    learn(memory, [found], { rows: [], asked, token: '', isSweep: true, sentAt: own, receivedAt: own })
  }

  for (const own of [10, 20, 30]) learnAt(own, true)
  expect(wanted(memory, demands, false)).toMatchObject([{ after: '0', dueFromMs: null }])
  expect(wanted(memory, demands, true)).toMatchObject([{ after: '0' }])

  for (const own of [40, 50]) learnAt(own, false)
  expect(wanted(memory, demands, false)).toMatchObject([{ after: '1000', dueFromMs: now - 5_000 }])
})
