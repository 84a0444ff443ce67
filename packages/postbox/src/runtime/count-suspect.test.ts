import { expect, test } from 'vitest'
import { answering, leased, type Sent } from '../../../../tests/support/lease-bench.ts'
import { recordedEvents } from '../../../../tests/support/recorded-events.ts'
import { LeaseLostError } from '../core/errors.ts'
import { resolveNames } from '../sql/names.ts'
import type { Statement } from '../sql/statement.ts'
import { countSuspect } from './count-suspect.ts'
import type { Lane } from './lane.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })

function counting() {
  const sent: Sent[] = []
  const { teller, told } = recordedEvents({ isHeard: false })
  const send = answering(sent)
  const run = async (given: Statement | (() => Statement | null)) => {
    const statement = typeof given === 'function' ? given() : given
    return statement === null
      ? []
      : send({ ...statement, values: [`{${statement.values[0]}}`, ...statement.values.slice(1)] })
  }
  const suspect = leased(7)
  const counted = countSuspect({ lane: { run } as unknown as Lane, names, teller }, suspect)
  return { sent, told, suspect, counted }
}

test('a suspect is counted by its own lease, as so many as its lease says', async () => {
  const { sent, told, counted, suspect } = counting()
  await sent[0]!.answer(7)

  expect(await counted).toBe(true)
  expect(sent).toMatchObject([{ name: 'count_delivery', values: ['{7}', 'token-7', 3] }])
  expect([told, suspect.isLost]).toEqual([[], false])
})

test('one that does not come back is lost: it is told once, and must not be run', async () => {
  const { sent, told, counted, suspect } = counting()
  await sent[0]!.answer()

  expect([await counted, suspect.isLost, suspect.reason]).toEqual([false, true, expect.any(LeaseLostError)])
  expect(told).toMatchObject([{ kind: 'lease_lost', seq: '7', phase: 'running' }])
})

test('one that a renewal found lost meanwhile is told by that, and must not be run', async () => {
  const { sent, told, counted, suspect } = counting()
  suspect.isLost = true
  await sent[0]!.answer(7)

  expect([await counted, told]).toEqual([false, []])
})

test('one that is lost before its turn comes is not counted at all', async () => {
  const { teller, told } = recordedEvents({ isHeard: false })
  const asked: unknown[] = []
  const suspect = leased(7)
  const run = async (given: () => Statement | null) => {
    suspect.isLost = true
    asked.push(given())
    return []
  }

  expect(await countSuspect({ lane: { run } as unknown as Lane, names, teller }, suspect)).toBe(false)
  expect([asked, told]).toEqual([[null], []])
})

test('one of which nobody knows whether it is counted must not be run: a warning says so', async () => {
  const { sent, told, counted, suspect } = counting()
  const error = new Error('the connection broke')
  await sent[0]!.fail(error)

  expect([await counted, suspect.isLost]).toEqual([false, false])
  expect(told).toMatchObject([{ kind: 'warning', code: 'count_failed', fields: { seq: '7' }, error }])
})
