import { expect, test } from 'vitest'
import { fakeClock } from '../../../../tests/support/fake-clock.ts'
import { runtimeError } from '../core/runtime-errors.ts'
import type { FreshInput } from '../sql/claim-fresh.ts'
import { resolveNames } from '../sql/names.ts'
import type { Statement } from '../sql/statement.ts'
import { createClaimer } from './claimer.ts'
import type { FailpointName } from './failpoint.ts'
import type { Lane } from './lane.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })
const orders = { queue: 'orders', room: 2, leaseMs: 30_000 }
const row = {
  ...{ kind: 'message', queue: 'orders', key: null, body: 'eA==', headers: null, timer: null, first: null },
  ...{ attempts: '0', deliveries: '1', suspect: 'false', created: '0', generation: null, due: null },
  now: '5000.5',
}
const queue = {
  ...{ kind: 'queue', queue: 'orders', nextdue: null, lowest: null, pause: null, now: '0' },
  ...{ own: '10', snapshot: '10:10:', top: '7' },
}

interface Options {
  readonly patience: number
  late(rows: readonly object[]): void
}

/** A claimer whose least claims are answered with messages of these seqs. */
function claimerOf(seqs: readonly string[], generation: number | null = null) {
  const clock = fakeClock()
  const sent: Statement<unknown>[] = []
  const options: Options[] = []
  const reached: FailpointName[] = []
  const lane = {
    connection: 0,
    fails: null as Error | null,
    async run(given: Statement<unknown> | (() => Statement<unknown>), how?: Options) {
      clock.advance(1_000)
      const statement = typeof given === 'function' ? given() : given
      sent.push(statement)
      if (how) options.push(how)
      clock.advance(400)
      if (lane.fails !== null) throw lane.fails
      if (statement.name === 'claim_messages') return [queue, { ...row, id: 'id-7', seq: '7' }]
      return seqs.map((seq) => ({ ...row, id: `id-${seq}`, seq }))
    },
  }
  const failpoint = { reach: async (name: FailpointName) => void reached.push(name) }
  const parts = { lane: lane as unknown as Lane, names, clock, generation, failpoint }
  const asked = () => sent.map(({ input }) => input as FreshInput)
  return { claimer: createClaimer(parts), sent, asked, options, reached, lane }
}

test('messages come oldest first, whatever their places, with leases that count from when the statement was sent', async () => {
  const { claimer, asked } = claimerOf(['10', '9'])
  const { held, isFull } = await claimer.claimFresh(orders)

  expect(held.map(({ lease, deadline }) => [lease.seq, lease.token, deadline])).toEqual([
    ['9', asked()[0]!.token, 31_000],
    ['10', asked()[0]!.token, 31_000],
  ])
  expect(held[0]!.lease.claimedAt).toEqual(new Date(5_000))
  expect(isFull).toBe(true)
})

test('it begins where claims begin, teaches them nothing, and begins anew on another connection', async () => {
  const { claimer, asked, lane } = claimerOf(['8'], 3)
  await claimer.claimFresh(orders)
  for (let count = 0; count < 2; count++) await claimer.claim([orders], 'claim')
  await claimer.claimFresh(orders)
  lane.connection = 1
  const { isFull } = await claimer.claimFresh(orders)

  const fresh = asked().filter((input) => 'after' in input)
  expect(fresh.map(({ after, room, generation }) => [after, room, generation])).toEqual([
    ['0', 2, 3],
    ['7', 2, 3],
    ['0', 2, 3],
  ])
  expect(isFull).toBe(false)
})

test('one that took too long may take twice as long the next time, and what it brings too late is given back', async () => {
  const { claimer, sent, options, lane } = claimerOf([])
  lane.fails = runtimeError('OUTBOX_STATEMENT_TIMEOUT', 'too long')
  await expect(claimer.claimFresh(orders)).rejects.toThrow('too long')
  lane.fails = null
  options[0]!.late([{ ...row, id: 'id-1', seq: '1' }])
  await claimer.claimFresh(orders)

  expect(options.map(({ patience }) => patience)).toEqual([1, 2])
  expect(sent.map(({ name }) => name)).toEqual(['claim_fresh', 'release_leases', 'claim_fresh'])
})

test('it can be held where claims are', async () => {
  const { claimer, reached } = claimerOf([])
  await claimer.claimFresh(orders)

  expect(reached).toEqual(['before_claim', 'claim_sent', 'after_claim'])
})
