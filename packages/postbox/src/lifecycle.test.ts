import { getEventListeners } from 'node:events'
import { describe, expect, test } from 'vitest'
import { recordedEvents } from '../../../tests/support/recorded-events.ts'
import { appliedSteps, runnerParts, subscriptionOf } from '../../../tests/support/runner-bench.ts'
import { runningTimers } from '../../../tests/support/timers.ts'
import type { Database } from './adapters/executor.ts'
import { createLifecycle } from './lifecycle.ts'
import type { Clock } from './runtime/clock.ts'
import type { Registry } from './runtime/runner.ts'
import type { Subscription } from './runtime/subscription.ts'
import { currentVersion } from './sql/migrations/index.ts'

/** Sleeps until it is woken: nothing in these tests waits for time. */
const sleepless: Clock = {
  now: () => 0,
  sleep: (_ms, signal) =>
    new Promise((resolve) => {
      if (signal.aborted) return resolve()
      signal.addEventListener('abort', () => resolve(), { once: true })
    }),
}

/** A promise and the function that settles it. */
function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

interface Answers {
  /** Answers `read_applied_steps`; the schema is there unless it says otherwise. */
  readonly steps?: () => Promise<readonly { version: string; breaking: string }[]>
  /** Answers every claim with no rows, when it resolves. */
  readonly claim?: () => Promise<void>
  readonly subscriptions?: readonly Subscription[]
  readonly onIdleError?: Database['onIdleError']
}

/** A lifecycle over a database that has a schema and no messages, with a record of what it ran. */
function lifecycleOf({ steps, claim, subscriptions = [subscriptionOf()], onIdleError }: Answers = {}) {
  const ran: string[] = []
  const { teller, told } = recordedEvents()
  const run = async ({ name }: { name: string }): Promise<readonly object[]> => {
    ran.push(name)
    if (name === 'read_applied_steps') return steps?.() ?? appliedSteps
    if (name === 'register_queues') return []
    if (name === 'read_isolation') return [{ isolation: 'read committed' }]
    await claim?.()
    return []
  }
  const database: Database = {
    run: run as Database['run'],
    transaction: () => Promise.reject(new Error('was not asked for')),
    singleSession: false,
    capacity: null,
    ...(onIdleError && { onIdleError }),
  }
  const registry: Registry = { subscriptions: [...subscriptions], onAdded: null }
  const parts = runnerParts(database, { telling: teller, internals: { clock: sleepless } })
  const lifecycle = createLifecycle(registry, () => parts)
  return {
    ...lifecycle,
    registry,
    ran,
    told,
    starts: () => ran.filter((name) => name === 'read_applied_steps').length,
  }
}

/** A start that fails the first time and works afterwards. */
function failingOnce(): Required<Pick<Answers, 'steps'>> {
  const answers = [async () => Promise.reject(new Error('no database')), async () => appliedSteps]
  return { steps: () => (answers.length > 1 ? answers.shift()! : answers[0]!)() }
}

/** Resolves when everything that could run without waiting has run. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** How many timers of ours keep this process alive. */
const timers = (): number => runningTimers().length

describe('start', () => {
  test('twice gives the same handle, and starts once', async () => {
    const outbox = lifecycleOf()
    const [first, second] = await Promise.all([outbox.start(), outbox.start()])
    const third = await outbox.start()
    await outbox.stop()

    expect(second).toBe(first)
    expect(third).toBe(first)
    expect(outbox.starts()).toBe(1)
  })

  test('claims for each subscription, those added later included', async () => {
    const outbox = lifecycleOf({ subscriptions: [] })
    await outbox.start()
    const before = outbox.ran.includes('claim_messages')
    outbox.registry.onAdded?.(subscriptionOf())
    await settled()
    await outbox.stop()

    expect([before, outbox.ran.includes('claim_messages')]).toEqual([false, true])
    expect(outbox.told[0]).toMatchObject({ kind: 'warning', code: 'no_subscribers' })
  })

  test('a start that fails tells its caller, and the next one starts afresh', async () => {
    const outbox = lifecycleOf(failingOnce())

    await expect(outbox.start()).rejects.toThrow('no database')
    await expect(outbox.start()).resolves.toBeDefined()
    await outbox.stop()
    expect(outbox.starts()).toBe(2)
  })

  test('an idle connection that breaks is told of while it runs, and nobody listens after it', async () => {
    const listeners = new Set<(error: unknown) => void>()
    const onIdleError = (listener: (error: unknown) => void) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    }
    const outbox = lifecycleOf({ onIdleError })
    const broken = new Error('terminated')
    await outbox.start()
    for (const tell of listeners) tell(broken)
    const during = listeners.size
    await outbox.stop()

    expect(outbox.told).toContainEqual({
      kind: 'warning',
      code: 'idle_connection_lost',
      message: 'an idle connection broke',
      fields: {},
      error: broken,
    })
    expect([during, listeners.size]).toEqual([1, 0])
  })

  test('without what it needs it rejects, and does not throw', async () => {
    const { start, stop } = createLifecycle({ subscriptions: [], onAdded: null }, () => {
      throw new Error('no database was given')
    })

    await expect(start()).rejects.toThrow('no database was given')
    await expect(stop()).resolves.toBeUndefined()
  })

  test.each([
    [[], 'OUTBOX_SCHEMA_OUTDATED'],
    [[...appliedSteps, { version: `${currentVersion + 1}`, breaking: 'true' }], 'OUTBOX_SCHEMA_NEWER'],
    // Compared as numbers: as texts, '100' would come before '2'.
    [[...appliedSteps, { version: '100', breaking: 'true' }], 'OUTBOX_SCHEMA_NEWER'],
  ])('on a schema of another version is refused (case %#)', async (steps, code) => {
    await expect(lifecycleOf({ steps: async () => steps }).start()).rejects.toMatchObject({ code })
  })

  test('on a later schema that serves this version, too, works', async () => {
    const later = { version: `${currentVersion + 1}`, breaking: 'false' }
    const outbox = lifecycleOf({ steps: async () => [later] })

    await expect(outbox.start()).resolves.toBeDefined()
    await outbox.stop()
  })

  test('after a stop works, and begins only when the stop has ended', async () => {
    const { opened, open } = gate()
    const outbox = lifecycleOf({ claim: () => opened })
    await outbox.start()
    const stopped = outbox.stop()
    const started = outbox.start()
    await settled()
    const startsBefore = outbox.starts()
    open()
    await Promise.all([stopped, started])
    await outbox.stop()

    expect([startsBefore, outbox.starts()]).toEqual([1, 2])
  })
})

describe('stop', () => {
  test('before any start resolves', async () => {
    await expect(lifecycleOf().stop()).resolves.toBeUndefined()
  })

  test('twice gives the same promise, whichever way it is asked for', async () => {
    const outbox = lifecycleOf()
    const running = await outbox.start()
    const stops = [outbox.stop(), outbox.stop(), running.stop(), running[Symbol.asyncDispose]()]
    await Promise.all(stops)

    expect(new Set([...stops, outbox.stop()]).size).toBe(1)
  })

  test('during a start waits for it, then stops it', async () => {
    const { opened, open } = gate()
    const outbox = lifecycleOf({ steps: () => opened.then(() => appliedSteps) })
    const order: string[] = []
    const started = outbox.start().then(() => order.push('started'))
    const stopped = outbox.stop().then(() => order.push('stopped'))
    await settled()
    const before = [...order]
    open()
    await Promise.all([started, stopped])

    expect([before, order]).toEqual([[], ['started', 'stopped']])
    expect(outbox.registry.onAdded).toBeNull()
  })

  test('during a start that fails resolves', async () => {
    const outbox = lifecycleOf(failingOnce())
    const started = outbox.start()
    const stopped = outbox.stop()

    await expect(started).rejects.toThrow('no database')
    await expect(stopped).resolves.toBeUndefined()
  })

  test('the handle of an old run does not stop a new one', async () => {
    const outbox = lifecycleOf()
    const old = await outbox.start()
    await outbox.stop()
    const current = await outbox.start()
    await old.stop()
    const stillRunning = outbox.registry.onAdded !== null
    const again = await outbox.start()
    await outbox.stop()

    expect(current).not.toBe(old)
    expect(again).toBe(current)
    expect([stillRunning, outbox.registry.onAdded]).toEqual([true, null])
  })

  test('nothing is claimed after it', async () => {
    const outbox = lifecycleOf()
    await outbox.start()
    await outbox.stop()
    const ran = outbox.ran.length
    await settled()

    expect(outbox.ran).toHaveLength(ran)
  })
})

describe('run', () => {
  test('with a signal that has aborted does not start', async () => {
    const outbox = lifecycleOf()
    await outbox.run({ signal: AbortSignal.abort() })

    expect(outbox.ran).toEqual([])
  })

  test.each(['signal', 'stop'] as const)('lasts until the %s, and ends stopped', async (end) => {
    const outbox = lifecycleOf()
    const shutdown = new AbortController()
    let ended = false
    const run = outbox.run({ signal: shutdown.signal }).then(() => {
      ended = true
    })
    await outbox.start()
    await settled()
    const endedBefore = ended
    if (end === 'signal') shutdown.abort()
    else void outbox.stop()
    await run

    expect(endedBefore).toBe(false)
    expect(outbox.registry.onAdded).toBeNull()
    expect(outbox.starts()).toBe(1)
  })

  test('without options lasts until stop', async () => {
    const outbox = lifecycleOf()
    const run = outbox.run()
    await outbox.start()
    await outbox.stop()

    await expect(run).resolves.toBeUndefined()
  })

  test('a signal that aborts during the start ends the run after it', async () => {
    const { opened, open } = gate()
    const outbox = lifecycleOf({ steps: () => opened.then(() => appliedSteps) })
    const shutdown = new AbortController()
    const run = outbox.run({ signal: shutdown.signal })
    shutdown.abort()
    open()
    await run

    expect(outbox.registry.onAdded).toBeNull()
    expect(outbox.starts()).toBe(1)
  })

  test('rejects when the start fails, and can be tried again', async () => {
    const outbox = lifecycleOf(failingOnce())

    await expect(outbox.run()).rejects.toThrow('no database')
    const again = outbox.run()
    await outbox.start()
    await outbox.stop()
    await expect(again).resolves.toBeUndefined()
  })

  test('a run that was stopped does not stop the run that was started right after it', async () => {
    const outbox = lifecycleOf()
    const run = outbox.run()
    await outbox.start()
    void outbox.stop()
    await outbox.start()
    await run
    await settled()
    const stillRunning = outbox.registry.onAdded !== null
    await outbox.stop()

    expect(stillRunning).toBe(true)
  })

  test('a run that ended leaves no listener on its signal', async () => {
    const outbox = lifecycleOf()
    const { signal } = new AbortController()
    const run = outbox.run({ signal })
    await outbox.start()
    await outbox.stop()
    await run

    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  test('without subscribers keeps the process alive until it ends, and no longer', async () => {
    const outbox = lifecycleOf({ subscriptions: [] })
    const before = timers()
    const run = outbox.run()
    await outbox.start()
    await settled()
    const during = timers()
    await outbox.stop()
    await run

    expect(during - before).toBe(1)
    expect(timers()).toBe(before)
  })

  test('that could not start keeps nothing alive', async () => {
    const before = timers()
    await Promise.allSettled([lifecycleOf(failingOnce()).run()])

    expect(timers()).toBe(before)
  })

  test.each([
    null,
    'SIGTERM',
    { signal: new AbortController() },
    { signal: null },
    { signl: AbortSignal.abort() },
  ])('refuses options that are wrong (case %#)', async (options) => {
    await expect(lifecycleOf().run(options as never)).rejects.toMatchObject({ code: 'OUTBOX_INVALID_OPTION' })
  })
})

test('a drain does not stop what somebody else started meanwhile', async () => {
  const outbox = lifecycleOf({ subscriptions: [] })
  const drained = outbox.drain()
  const { stop } = await outbox.start()
  await drained
  const during = outbox.health().ok
  await stop()

  expect([during, outbox.health().ok]).toEqual([true, false])
})
