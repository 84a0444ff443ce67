import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { recordedEvents } from '../../../../tests/support/recorded-events.ts'
import {
  appliedSteps,
  claimedMessage,
  claimedQueue,
  runnerParts,
  subscriptionOf,
} from '../../../../tests/support/runner-bench.ts'
import type { Database } from '../adapters/executor.ts'
import type { Told } from '../core/events.ts'
import { resolveSubscribeOptions, type SubscribeOptions } from '../core/subscribe-options.ts'
import type { Statement } from '../sql/statement.ts'
import { type Registry, type RunnerParts, startRunner } from './runner.ts'
import type { Subscription } from './subscription.ts'

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

/** A database with a schema and no message, whose pool is of this size. */
function databaseOf(capacity: number | null, given: Partial<Database> = {}): Database {
  const run = async ({ name, values }: Statement): Promise<readonly object[]> => {
    if (name === 'read_applied_steps') return appliedSteps
    if (name === 'read_isolation') return [{ isolation: 'read committed' }]
    if (name !== 'claim_messages') return []
    return (JSON.parse(values[0] as string) as { queue: string }[]).map(({ queue }) => claimedQueue(queue))
  }
  const listen = (): Promise<never> => new Promise(() => {})
  return { run, transaction: run, singleSession: false, capacity, listen, ...given } as unknown as Database
}

/** What is told between a start and its stop, and what is done meanwhile. */
async function toldDuring(
  parts: RunnerParts,
  subscriptions: Subscription[],
  work: (registry: Registry) => unknown = () => {},
) {
  const { teller, told } = recordedEvents()
  const registry: Registry = { subscriptions, onAdded: null }
  const running = await startRunner(registry, { ...parts, telling: teller })
  await work(registry)
  const stopped = running.stop()
  await vi.advanceTimersByTimeAsync(3_000)
  await stopped
  return told
}

const isWarning = ({ kind }: Told): boolean => kind === 'warning'

/** What is warned of at the start of an outbox on a pool of this size, with these options. */
async function warnedAtStart(
  capacity: number | null,
  given: { wake?: 'poll'; listensElsewhere?: true } = {},
) {
  const database = databaseOf(capacity)
  const listenDatabase = given.listensElsewhere ? databaseOf(capacity) : database
  const parts = runnerParts(database, { listenDatabase, wake: given.wake ?? 'quiet', stopTimeoutMs: 0 })
  return (await toldDuring(parts, [subscriptionOf()])).filter(isWarning)
}

const settingsOf = (options: SubscribeOptions) => ({ settings: resolveSubscribeOptions(options) })

describe('startRunner', () => {
  test('gives up on a database that does not answer within ten seconds', async () => {
    const database = { run: () => new Promise(() => {}), capacity: null } as unknown as Database
    const started = startRunner({ subscriptions: [], onAdded: null }, runnerParts(database))
    const refused = expect(started).rejects.toMatchObject({ code: 'OUTBOX_STATEMENT_TIMEOUT' })
    await vi.advanceTimersByTimeAsync(10_000)

    await refused
  })

  test.each([1, 2])('says that a pool of %i is too small to listen', async (capacity) => {
    expect(await warnedAtStart(capacity)).toEqual([
      {
        kind: 'warning',
        code: 'pool_too_small',
        message: expect.stringContaining('too small to listen'),
        fields: { max: capacity, needed: 3 },
      },
    ])
  })

  test.each<[string, number | null, Parameters<typeof warnedAtStart>[1]]>([
    ['a pool of three', 3, {}],
    ['a client whose number of connections nobody knows', null, {}],
    ['a small pool that is not to listen', 1, { wake: 'poll' }],
    ['a small pool beside one to listen on', 1, { listensElsewhere: true }],
  ])('says nothing about %s', async (_title, capacity, given) => {
    expect(await warnedAtStart(capacity, given)).toEqual([])
  })

  test('says that a client cannot listen', async () => {
    const parts = runnerParts(databaseOf(null, { listen: undefined as never }), { wake: 'quiet' })

    expect((await toldDuring(parts, [subscriptionOf()])).filter(isWarning)).toEqual([
      { kind: 'warning', code: 'cannot_listen', message: expect.stringContaining('polling'), fields: {} },
    ])
  })

  test('says that nobody subscribes', async () => {
    expect(await toldDuring(runnerParts(databaseOf(3)), [])).toMatchObject([
      { kind: 'warning', code: 'no_subscribers' },
    ])
  })

  test('says what is doubtful about the options of a subscription, also of one that is added later', async () => {
    const endless = subscriptionOf(settingsOf({ retry: Object.assign(() => 1, { maxAttempts: null }) }))
    const rejecting = { ...settingsOf({ ack: 'reject-on-error', retry: () => 1 }), queues: ['mails'] }
    const late = subscriptionOf({ ...rejecting, name: 'post' })

    const told = await toldDuring(runnerParts(databaseOf(3)), [endless], ({ onAdded }) => onAdded?.(late))

    expect(told.filter(isWarning)).toMatchObject([
      { kind: 'warning', code: 'no_attempt_limit', fields: { handler: 'ship' } },
      { kind: 'warning', code: 'reject_with_retry', fields: { handler: 'post' } },
    ])
  })

  test('names the handler of each queue in what is told of it, also of one that is added later', async () => {
    const parts = runnerParts(databaseOf(3))
    const both = subscriptionOf({ queues: ['orders', 'mails'] })
    const late = subscriptionOf({ queues: ['labels'], name: 'print' })

    const told = await toldDuring(parts, [both], async ({ onAdded }) => {
      await vi.advanceTimersByTimeAsync(1)
      onAdded?.(late)
      await vi.advanceTimersByTimeAsync(1)
    })

    expect(told.slice(0, 2)).toEqual([
      { kind: 'claimed', queue: 'orders', handler: 'ship', count: 0 },
      { kind: 'claimed', queue: 'mails', handler: 'ship', count: 0 },
    ])
    expect(told).toContainEqual({ kind: 'claimed', queue: 'labels', handler: 'print', count: 0 })
  })

  test('tells how much is in hand when a stop no longer waits for it', async () => {
    const { run } = databaseOf(3)
    const ready = [claimedMessage('orders', '1'), claimedMessage('orders', '2')]
    const withMessages = async (statement: Statement): Promise<readonly unknown[]> => {
      const rows = await run(statement)
      return statement.name === 'claim_messages' ? [...rows, ...ready.splice(0)] : rows
    }
    const database = databaseOf(3, { run: withMessages as Database['run'] })
    const stuck = subscriptionOf({ run: { kind: 'each', handler: () => new Promise(() => {}) } })

    const told = await toldDuring(runnerParts(database, { stopTimeoutMs: 500 }), [stuck], () =>
      vi.advanceTimersByTimeAsync(1),
    )

    expect(told.slice(-1)).toEqual([{ kind: 'drain_timeout', stopTimeoutMs: 500, messages: 2 }])
  })

  test('hears of idle connections that break, where it works and where it listens, until it has stopped', async () => {
    const heard: string[] = []
    const hearing = (name: string): Database => {
      const run = async (): Promise<readonly object[]> => appliedSteps
      const onIdleError = (): (() => void) => {
        heard.push(`${name} heard`)
        return () => void heard.push(`${name} stopped`)
      }
      return { run, capacity: null, onIdleError } as unknown as Database
    }
    const parts = runnerParts(hearing('work'), { listenDatabase: hearing('listen') })
    const running = await startRunner({ subscriptions: [], onAdded: null }, parts)
    const stopped = running.stop()
    await vi.advanceTimersByTimeAsync(3_000)
    await stopped

    expect(heard).toEqual(['work heard', 'listen heard', 'work stopped', 'listen stopped'])
  })
})
