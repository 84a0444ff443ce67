import { expect, test } from 'vitest'
import { fakeClock } from '../../../../tests/support/fake-clock.ts'
import { resolveNames } from '../sql/names.ts'
import type { Statement } from '../sql/statement.ts'
import type { Demand } from './claimer.ts'
import { createClaimers } from './claimers.ts'
import type { Lane } from './lane.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })
const plain: Demand = { queue: 'mails', room: 5, leaseMs: 1_000 }
const ordered: Demand = { queue: 'orders', room: 5, leaseMs: 1_000, isOrdered: true }
const message = {
  ...{ kind: 'message', queue: 'mails', key: null, body: 'eA==', headers: null, timer: null, first: null },
  ...{
    attempts: '0',
    deliveries: '1',
    suspect: 'false',
    created: '0',
    generation: null,
    due: null,
    id: 'id',
    seq: '1',
  },
}
const queueOf = (queue: string) => ({
  ...{ kind: 'queue', queue, nextdue: null, now: '0', top: '0', own: '5', snapshot: '5:5:' },
  ...{
    lowest: null,
    reached: null,
    more: 'false',
    lastkey: null,
    joining: '0',
    leftkeys: null,
    leftover: 'false',
    pause: null,
  },
})

/** Each statement is answered by what is given for its name; by an empty queue otherwise. */
function claimersOf(answers: Readonly<Record<string, readonly object[] | Error>> = {}) {
  const sent: string[] = []
  const now = { answers }
  const clock = fakeClock()
  const lane = {
    connection: 0,
    async run(given: Statement<object> | (() => Statement<object>)) {
      const { name } = typeof given === 'function' ? given() : given
      sent.push(name)
      clock.advance(3)
      const answer = now.answers[name] ?? [queueOf(name === 'claim_messages' ? 'mails' : 'orders')]
      if (answer instanceof Error) throw answer
      return answer
    },
  }
  return { claimers: createClaimers({ lane: lane as unknown as Lane, names, clock }), sent, now }
}

test('queues without an order are claimed by one statement, those with by another, and none for nobody', async () => {
  const { claimers, sent } = claimersOf()
  const found = []
  for (const demands of [[plain], [ordered], [ordered, plain]])
    found.push((await claimers.claim(demands, 'claim')).map(({ queue }) => queue))

  expect(sent).toEqual(['claim_messages', 'claim_in_order', 'claim_messages', 'claim_in_order'])
  expect(found).toEqual([['mails'], ['orders'], ['mails', 'orders']])
})

test('what is fresh in a queue without an order is claimed by a statement of its own', async () => {
  const { claimers, sent } = claimersOf({ claim_fresh: [{ ...message, now: '0' }] })
  const { queue, held, isFull } = await claimers.claimFresh({ ...plain, room: 1 })

  expect(sent).toEqual(['claim_fresh'])
  expect([queue, held.map(({ lease }) => lease.seq), isFull]).toEqual(['mails', ['1'], true])
})

test('what one has claimed goes to its handlers though the other fails; that is told by the next, once', async () => {
  const cut = new Error('cut')
  const { claimers, now, sent } = claimersOf({
    claim_messages: [queueOf('mails'), message],
    claim_in_order: cut,
  })
  const found = await claimers.claim([plain, ordered], 'claim')
  now.answers = {}
  const before = sent.length

  expect(claimers.belated.isUntold).toBe(true)
  expect(found.map(({ queue, held }) => [queue, held.length])).toEqual([['mails', 1]])
  await expect(claimers.claim([plain], 'claim')).rejects.toBe(cut)
  expect([sent.length, claimers.belated.isUntold]).toEqual([before, false])
  expect(await claimers.claim([plain], 'claim')).toHaveLength(1)
})

test('of several that fail after something was claimed all are told, as one', async () => {
  const failures = [new Error('no lock'), new Error('no walk')]
  const [joinFails, walkFails] = failures
  const { claimers, now } = claimersOf()
  const first = { ...message, queue: 'orders', key: 'a', afterdead: null }
  let looks = 0
  now.answers = {
    join_keys: joinFails!,
    get claim_in_order() {
      return looks++ === 0 ? [{ ...queueOf('orders'), joining: '1' }, first] : walkFails!
    },
  }
  const [found] = await claimers.claim([ordered], 'sweep')
  now.answers = {}
  const told = await claimers.claim([ordered], 'claim').catch((error: unknown) => error)

  expect(found!.held).toHaveLength(1)
  expect(told).toBeInstanceOf(AggregateError)
  expect(told).toMatchObject({ errors: failures, message: 'Error: no lock; Error: no walk' })
  expect(await claimers.claim([ordered], 'claim')).toHaveLength(1)
})

test('a failure is told at once when nothing was claimed before it', async () => {
  const cut = new Error('cut')
  const { claimers, now } = claimersOf({ claim_in_order: cut })
  await expect(claimers.claim([plain, ordered], 'claim')).rejects.toBe(cut)
  await expect(claimers.claim([ordered], 'claim')).rejects.toBe(cut)
  now.answers = { claim_messages: cut }
  await expect(claimers.claim([plain, ordered], 'claim')).rejects.toBe(cut)
  now.answers = {}

  expect(await claimers.claim([plain, ordered], 'claim')).toHaveLength(2)
})

test('a sweep takes as long as both', async () => {
  const { claimers } = claimersOf()
  await claimers.claim([plain, ordered], 'sweep')

  expect(claimers.sweepMs).toBe(6)
})

test('keys that were settled are those of ordered queues', async () => {
  const { claimers } = claimersOf()
  claimers.keySettled('orders', 'a', '1')
  const [found] = await claimers.claim([ordered], 'claim')

  expect(found!.isFull).toBe(false)
})
