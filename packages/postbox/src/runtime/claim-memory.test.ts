// What claims of a generation remember of the due lane. The rest is in claimer.test.ts.
import { expect, test } from 'vitest'
import type { MessageRow, QueueRow } from '../sql/claim-messages.ts'
import { createMemory, learn, wanted } from './claim-memory.ts'

const demands = [{ queue: 'orders', room: 3, leaseMs: 30_000 }]
const now = 60_000
const row: QueueRow = {
  ...{ kind: 'queue', queue: 'orders', own: '10', snapshot: '10:10:', top: '0' },
  ...{ nextdue: null, lowest: null, now: String(now) },
}

function messageOf(due: string | null, nth: number): MessageRow {
  return {
    ...{ kind: 'message', queue: 'orders', id: `id-${nth}`, seq: `${nth}`, key: null, timer: null, body: '' },
    ...{ headers: null, attempts: '0', deliveries: '1', created: '0', first: null, generation: null, due },
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
