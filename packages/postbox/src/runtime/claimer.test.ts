import { describe, expect, test } from 'vitest'
import type { Executor } from '../adapters/executor.ts'
import { resolveSubscribeOptions } from '../core/subscribe-options.ts'
import type { ClaimedRow } from '../sql/claim-messages.ts'
import { resolveNames } from '../sql/names.ts'
import { createClaimer } from './claimer.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })
const subscription = {
  queue: 'orders',
  name: 'ship',
  handler: () => {},
  settings: resolveSubscribeOptions(undefined),
  rules: { queues: null, codec: undefined, maxBodyBytes: 1 },
}

function rowOf(seq: string): ClaimedRow {
  const counts = { attempts: '0', deliveries: '1', created: '1700000000123.456000', generation: null }
  return { id: `id-${seq}`, seq, queue: 'orders', key: null, body: 'eA==', headers: null, ...counts }
}

/** What each lane answers, or the error it fails with. */
interface Lanes {
  readonly due?: readonly string[] | Error
  readonly fresh?: readonly string[] | Error
}

/** A claimer over lanes that answer as told, with a record of what was asked: the lane and its limit. */
function claimerOf({ due = [], fresh = [] }: Lanes, onClaim: () => void = () => {}) {
  const asked: unknown[] = []
  const executor = {
    run: async ({ name, values }: { name: string; values: readonly unknown[] }) => {
      asked.push([name, values[3]])
      onClaim()
      const answer = name === 'claim_due' ? due : fresh
      if (answer instanceof Error) throw answer
      return answer.map(rowOf)
    },
  } as unknown as Executor
  return { claimer: createClaimer(executor, names, subscription), asked }
}

const never = new AbortController().signal
const broken = new Error('connection lost')

describe('createClaimer', () => {
  test('takes what is due first, and fresh messages for the slots that are left', async () => {
    const { claimer, asked } = claimerOf({ due: ['10', '9'], fresh: ['2', '1'] })
    const leases = await claimer.claim(5, never)

    expect(leases.map((lease) => lease.seq)).toEqual(['9', '10', '1', '2'])
    expect(asked).toEqual([
      ['claim_due', 5],
      ['claim_fresh', 3],
    ])
  })

  test('asks for no fresh messages when those that are due take every slot', async () => {
    const { claimer, asked } = claimerOf({ due: ['1', '2'] })
    await claimer.claim(2, never)

    expect(asked).toEqual([['claim_due', 2]])
  })

  test('claims nothing more once halted, and keeps what it has', async () => {
    const halt = new AbortController()
    const { claimer, asked } = claimerOf({ due: ['1'], fresh: ['2'] }, () => halt.abort())
    const leases = await claimer.claim(5, halt.signal)

    expect(leases.map((lease) => lease.seq)).toEqual(['1'])
    expect(asked).toHaveLength(1)
  })

  test('when the second lane fails, what the first one gave runs', async () => {
    const leases = await claimerOf({ due: ['1'], fresh: broken }).claimer.claim(5, never)

    expect(leases.map((lease) => lease.seq)).toEqual(['1'])
  })

  test.each<[string, Lanes]>([
    ['the first lane fails', { due: broken, fresh: ['1'] }],
    ['the second lane fails and the first gave nothing', { fresh: broken }],
  ])('when %s, it fails', async (_title, lanes) => {
    await expect(claimerOf(lanes).claimer.claim(5, never)).rejects.toBe(broken)
  })

  test('makes numbers, dates and bytes of the texts of a row', async () => {
    const [lease] = await claimerOf({ due: ['1'] }).claimer.claim(5, never)

    expect(lease).toEqual({
      token: expect.stringMatching(/^[0-9a-f-]{36}$/),
      id: 'id-1',
      seq: '1',
      queue: 'orders',
      key: null,
      body: Buffer.from('x'),
      headers: {},
      attempt: 1,
      deliveries: 1,
      createdAt: new Date(1_700_000_000_123),
      generation: null,
    })
  })
})
