import { describe, expect, test } from 'vitest'
import { fakeClock } from '../../../../tests/support/fake-clock.ts'
import { runtimeError } from '../core/runtime-errors.ts'
import { resolveNames } from '../sql/names.ts'
import type { Statement } from '../sql/statement.ts'
import { createClaimer } from './claimer.ts'
import type { Lane } from './lane.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })
const demands = [{ queue: 'orders', room: 10, leaseMs: 30_000 }]
const timeout = runtimeError('OUTBOX_STATEMENT_TIMEOUT', 'too late')
const queueSeenBy = (own: number): object => {
  const fixed = {
    kind: 'queue',
    queue: 'orders',
    top: '90',
    nextdue: null,
    lowest: '50',
    now: '0',
    pause: null,
  }
  return { ...fixed, own: `${own}`, snapshot: `${own}:${own}:` }
}
const message = {
  kind: 'message',
  queue: 'orders',
  id: 'id',
  seq: '7',
  due: null,
  deliveries: '1',
  suspect: 'false',
}

interface Sent {
  readonly name: string
  readonly text: string
  readonly values: readonly unknown[]
  readonly patience: number | undefined
  late(rows: readonly object[]): void
}

/** A claimer over a lane that fails as often as it is told to, and then finds nothing. */
function claimerOf(failures: Error[]) {
  const sent: Sent[] = []
  const lane = {
    connection: 0,
    async run(
      given: Statement | (() => Statement),
      options: { patience?: number; late?: Sent['late'] } = {},
    ): Promise<readonly object[]> {
      const { name, text, values } = typeof given === 'function' ? given() : given
      sent.push({ name, text, values, patience: options.patience, late: options.late ?? (() => {}) })
      const failure = failures.shift()
      if (failure !== undefined) throw failure
      return [queueSeenBy(sent.length)]
    },
  }
  const claimer = createClaimer({ lane: lane as unknown as Lane, names, clock: fakeClock() })
  const claim = (kind: 'claim' | 'sweep'): Promise<unknown> => claimer.claim(demands, kind).catch(() => {})
  return { claim, sent, failures }
}

describe('a claim that takes too long', () => {
  test('may take twice as long the next time, up to 32 times, and the usual time once it succeeds', async () => {
    const { claim, sent } = claimerOf(Array(7).fill(timeout))
    for (let n = 0; n < 9; n++) await claim('claim')

    expect(sent.map(({ patience }) => patience)).toEqual([1, 2, 4, 8, 16, 32, 32, 32, 1])
  })

  test('another failure does not change its time', async () => {
    const { claim, sent } = claimerOf([new Error('connection lost')])
    await claim('claim')
    await claim('claim')

    expect(sent.map(({ patience }) => patience)).toEqual([1, 1])
  })

  test('a sweep from zero that failed is not followed by another: only every tenth begins there', async () => {
    const { claim, sent, failures } = claimerOf([])
    for (let n = 0; n < 10; n++) await claim('sweep')
    failures.push(timeout)
    await claim('sweep')
    await claim('sweep')
    const lowest = sent.map(({ values }) => JSON.parse(values[0] as string)[0].after)

    expect(lowest.slice(9)).toEqual(['49', '0', '49'])
  })

  test('what it brings after all is given back, and nothing is sent when it brings nothing', async () => {
    const { claim, sent } = claimerOf([timeout])
    await claim('claim')
    sent[0]!.late([queueSeenBy(1)])
    const before = sent.length
    sent[0]!.late([queueSeenBy(1), message])
    const token = sent[0]!.values[3]

    expect(before).toBe(1)
    expect(sent.slice(1)).toMatchObject([{ name: 'release_leases', values: ['{7}', `{${token}}`, '{0}'] }])
    expect(sent[1]!.text).toContain('fired_timer_id')
  })

  test('a suspect that it brings after all is given back uncounted, as it was', async () => {
    const { claim, sent } = claimerOf([timeout])
    await claim('claim')
    sent[0]!.late([
      { ...message, deliveries: '3', suspect: 'true' },
      { ...message, seq: '8', deliveries: '3' },
    ])

    expect(sent[1]!.values.slice(2)).toEqual(['{3,2}'])
  })

  test('what it brings after all is given back without the names of timers, where it cannot be with them', async () => {
    const { claim, sent } = claimerOf([timeout, new Error('somebody is about to take the name')])
    await claim('claim')
    sent[0]!.late([message])
    await new Promise((resolve) => setImmediate(resolve))

    expect(sent[2]).toMatchObject({ name: 'release_leases', values: sent[1]!.values })
    expect(sent[2]!.text).not.toContain('timer_id')
  })
})
