import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Database } from '../adapters/executor.ts'
import type { LogEntry } from '../core/log.ts'
import { resolveSubscribeOptions } from '../core/subscribe-options.ts'
import { resolveNames } from '../sql/names.ts'
import { startRunner } from './runner.ts'

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

const names = resolveNames({ schema: 'public', table: 'outbox' })
const subscription = {
  queue: 'orders',
  name: 'ship',
  handler: () => {},
  settings: resolveSubscribeOptions(undefined),
  rules: { queues: null, codec: undefined, maxBodyBytes: 1 },
}

/** What is logged at the start of an outbox on a pool of this size, with these options. */
async function saidAtStart(capacity: number | null, given: { wake?: 'poll'; listensElsewhere?: true } = {}) {
  const log: LogEntry[] = []
  const run = async ({ name }: { name: string }): Promise<readonly object[]> =>
    name === 'read_applied_steps' ? [{ version: '1', breaking: 'false' }] : []
  const listen = (): Promise<never> => new Promise(() => {})
  const database = { run, transaction: run, singleSession: false, capacity, listen } as unknown as Database
  const listenDatabase = given.listensElsewhere ? { ...database } : database
  const parts = { database, listenDatabase, names, wake: given.wake ?? ('quiet' as const), stopTimeoutMs: 0 }
  const registry = { subscriptions: [subscription], onAdded: null }
  const running = await startRunner(registry, { ...parts, log: (entry) => void log.push(entry) })
  const said = log.map(({ message }) => message)
  const stopped = running.stop()
  await vi.advanceTimersByTimeAsync(3_000)
  await stopped
  return said
}

describe('startRunner', () => {
  test('gives up on a database that does not answer within ten seconds', async () => {
    const database = { run: () => new Promise(() => {}), capacity: null } as unknown as Database
    const parts = { database, listenDatabase: database, names, wake: 'poll' as const, stopTimeoutMs: 0 }
    const started = startRunner({ subscriptions: [], onAdded: null }, { ...parts, log: () => {} })
    const refused = expect(started).rejects.toMatchObject({ code: 'OUTBOX_STATEMENT_TIMEOUT' })
    await vi.advanceTimersByTimeAsync(10_000)

    await refused
  })

  test.each([1, 2])('says that a pool of %i is too small to listen', async (capacity) => {
    expect(await saidAtStart(capacity)).toEqual([expect.stringContaining('too small to listen')])
  })

  test.each<[string, number | null, Parameters<typeof saidAtStart>[1]]>([
    ['a pool of three', 3, {}],
    ['a client whose number of connections nobody knows', null, {}],
    ['a small pool that is not to listen', 1, { wake: 'poll' }],
    ['a small pool beside one to listen on', 1, { listensElsewhere: true }],
  ])('says nothing about %s', async (_title, capacity, given) => {
    expect(await saidAtStart(capacity, given)).toEqual([])
  })

  test('hears of idle connections that break, where it works and where it listens, until it has stopped', async () => {
    const heard: string[] = []
    const databaseOf = (name: string): Database => {
      const run = async (): Promise<readonly object[]> => [{ version: '1', breaking: 'false' }]
      const onIdleError = (): (() => void) => {
        heard.push(`${name} heard`)
        return () => void heard.push(`${name} stopped`)
      }
      return { run, capacity: null, onIdleError } as unknown as Database
    }
    const [database, listenDatabase] = [databaseOf('work'), databaseOf('listen')]
    const parts = { database, listenDatabase, names, wake: 'poll' as const, stopTimeoutMs: 1_000 }
    const running = await startRunner({ subscriptions: [], onAdded: null }, { ...parts, log: () => {} })
    const stopped = running.stop()
    await vi.advanceTimersByTimeAsync(3_000)
    await stopped

    expect(heard).toEqual(['work heard', 'listen heard', 'work stopped', 'listen stopped'])
  })
})
