// What can be asked of an outbox beside starting and stopping it: drain, health, ping.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { fakeClock } from '../../../tests/support/fake-clock.ts'
import {
  appliedSteps,
  claimedMessage,
  claimedQueue,
  runnerParts,
  subscriptionOf,
} from '../../../tests/support/runner-bench.ts'
import type { Database, Hearing } from './adapters/executor.ts'
import type { Context, Handler } from './core/handler.ts'
import { createLifecycle } from './lifecycle.ts'
import type { Registry, RunnerParts } from './runtime/runner.ts'

const isEmpty = true
const none = { acked: 0, retried: 0, snoozed: 0, dead: 0, lost: 0 }

/** Resolves when everything that could run without waiting has run, unhandled rejections included. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A promise and the function that settles it. */
function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

interface World {
  /** Runs for each message, by its body. */
  handler?: (body: unknown, context: Context) => unknown
  /** Awaited before a statement is answered, by its name. */
  readonly answers?: Record<string, (() => Promise<unknown>) | undefined>
  readonly hasSubscriber?: boolean
  readonly listen?: Database['listen']
  readonly wake?: RunnerParts['wake']
}

/** A lifecycle over a database with one queue, whose table is `ready`; the rows of `taken` belong to somebody else. */
function lifecycleOf({ answers = {}, hasSubscriber = true, listen, wake = 'poll', ...world }: World = {}) {
  const ready: string[] = []
  const taken = new Set<string>()
  const ran: string[] = []
  const clock = fakeClock()
  const claimed = (rooms: string): readonly object[] => {
    const queues = JSON.parse(rooms) as { queue: string; room: number }[]
    return queues.flatMap(({ queue, room }) => [
      claimedQueue(queue),
      ...ready.splice(0, room).map((seq) => claimedMessage(queue, seq)),
    ])
  }
  const rowsOf = (name: string, [first]: readonly unknown[]): readonly object[] => {
    if (name === 'read_applied_steps') return appliedSteps
    if (name === 'read_isolation') return [{ isolation: 'read committed' }]
    if (name === 'claim_messages') return claimed(first as string)
    if (name === 'ping' || name === 'send_word') return [{ answer: 'yes' }]
    const seqs = [...(first as string).matchAll(/(?<=[{,]|"seq":")\d+/g)].map(([seq]) => ({ seq }))
    return seqs.filter(({ seq }) => !taken.has(seq))
  }
  const run = async ({ name, values }: { name: string; values: readonly unknown[] }) => {
    ran.push(name)
    await answers[name]?.()
    return rowsOf(name, values)
  }
  const database: Database = {
    run: run as Database['run'],
    transaction: () => Promise.reject(new Error('was not asked for')),
    singleSession: false,
    capacity: null,
    ...(listen && { listen }),
  }
  const handler: Handler = ({ body }, context) => world.handler?.(body, context)
  const subscription = subscriptionOf({ run: { kind: 'each', handler } })
  const registry: Registry = { subscriptions: hasSubscriber ? [subscription] : [], onAdded: null }
  const parts = runnerParts(database, { wake, internals: { clock } })
  const lifecycle = createLifecycle(registry, () => parts)
  const starts = (): number => ran.filter((name) => name === 'read_applied_steps').length
  return { ...lifecycle, registry, ready, taken, ran, clock, answers, starts }
}

const broken = (): Promise<never> => Promise.reject(new Error('no database'))
const never = (): Promise<never> => new Promise(() => {})

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})

afterEach(() => {
  vi.useRealTimers()
})

describe('drain', () => {
  test('delivers what is ready, says what became of it, and stops', async () => {
    const handler = (body: unknown): void => {
      if (body === 3) throw new Error('failed')
    }
    const outbox = lifecycleOf({ handler })
    outbox.ready.push('1', '2', '3', '4', '5', '6')
    outbox.taken.add('4').add('5')

    expect(await outbox.drain()).toEqual({ ...none, acked: 3, retried: 1, lost: 2, isEmpty })
    expect(outbox.registry.onAdded).toBeNull()
    expect(outbox.health().ok).toBe(false)
  })

  test('counts what its handlers gave up, and what they put back', async () => {
    const outbox = lifecycleOf({
      handler: (body, context) => (body === 1 ? context.reject() : context.snooze(60_000)),
    })
    outbox.ready.push('1', '2', '3')

    expect(await outbox.drain()).toEqual({ ...none, dead: 1, snoozed: 2, isEmpty })
  })

  test('ends when what its handlers published is delivered, too', async () => {
    const handled: unknown[] = []
    const outbox = lifecycleOf({
      handler: (body) => {
        handled.push(body)
        if (body === 1) outbox.ready.push('2')
      },
    })
    outbox.ready.push('1')

    expect(await outbox.drain()).toEqual({ ...none, acked: 2, isEmpty })
    expect(handled).toEqual([1, 2])
  })

  test.each([true, false])(
    'of nothing ends at once and stops (with a subscriber: %s)',
    async (hasSubscriber) => {
      const outbox = lifecycleOf({ hasSubscriber })

      expect(await outbox.drain()).toEqual({ ...none, isEmpty })
      expect(outbox.registry.onAdded).toBeNull()
    },
  )

  test('at its deadline claims nothing more, finishes what runs and says that it is not empty', async () => {
    const { opened, open } = gate()
    const outbox = lifecycleOf({ handler: () => opened })
    outbox.ready.push('1')
    let ended = false
    const drained = outbox.drain({ deadlineMs: 500 }).finally(() => {
      ended = true
    })
    await settled()
    vi.advanceTimersByTime(499)
    await settled()
    const early = outbox.registry.onAdded !== null
    vi.advanceTimersByTime(1)
    await settled()
    outbox.ready.push('2')
    const during = [outbox.registry.onAdded, ended]
    open()

    expect(await drained).toEqual({ ...none, acked: 1, isEmpty: false })
    expect([early, during, outbox.ready]).toEqual([true, [null, false], ['2']])
  })

  test('leaves no timer behind, whether it ended before its deadline, at it, or never began', async () => {
    await lifecycleOf().drain({ deadlineMs: 500 })
    const before = vi.getTimerCount()
    const late = lifecycleOf({ handler: never })
    late.ready.push('1')
    const drained = late.drain({ deadlineMs: 500 })
    await settled()
    vi.advanceTimersByTime(500)
    await settled()
    // The time that handlers have, and the time that they get to give up.
    for (const ms of [1_000, 1_000]) {
      late.clock.advance(ms)
      await settled()
    }
    await drained
    const failed = lifecycleOf({ answers: { read_applied_steps: broken } })

    await expect(failed.drain({ deadlineMs: 500 })).rejects.toThrow('no database')
    expect([before, vi.getTimerCount()]).toEqual([0, 0])
  })

  test('of an outbox that runs leaves it running, and counts only what came since', async () => {
    const outbox = lifecycleOf()
    outbox.ready.push('1', '2')
    await outbox.start()
    await outbox.drain()
    outbox.ready.push('3')
    const drained = await outbox.drain()
    const isRunning = outbox.health().ok
    await outbox.stop()

    expect(drained).toEqual({ ...none, acked: 1, isEmpty })
    expect([isRunning, outbox.starts()]).toEqual([true, 1])
  })

  test('twice at once is one start, and both are told the same', async () => {
    const outbox = lifecycleOf()
    outbox.ready.push('1')
    const both = await Promise.all([outbox.drain(), outbox.drain()])

    expect(both).toEqual(Array(2).fill({ ...none, acked: 1, isEmpty }))
    expect([outbox.starts(), outbox.registry.onAdded]).toEqual([1, null])
  })

  test.each(['a handler runs', 'it starts'])(
    'a stop while %s ends it, when the stop has ended',
    async (when) => {
      const { opened, open } = gate()
      const isStarting = when === 'it starts'
      const outbox = lifecycleOf(
        isStarting ? { answers: { read_applied_steps: () => opened } } : { handler: () => opened },
      )
      outbox.ready.push('1')
      const order: string[] = []
      const drained = outbox.drain()
      void drained.then(() => order.push('drained'))
      await settled()
      const stopped = outbox.stop().then(() => order.push('stopped'))
      await settled()
      const before = [...order]
      open()
      await stopped

      expect(await drained).toEqual({ ...none, acked: isStarting ? 0 : 1, isEmpty: false })
      expect([before, order.toSorted()]).toEqual([[], ['drained', 'stopped']])
    },
  )

  test('that could not start rejects, and can be tried again', async () => {
    const outbox = lifecycleOf({ answers: { read_applied_steps: broken } })
    await expect(outbox.drain()).rejects.toThrow('no database')
    outbox.answers['read_applied_steps'] = undefined

    expect(await outbox.drain()).toMatchObject({ isEmpty })
  })

  test.each([null, 5, { deadlineMs: -1 }, { deadlineMs: 1.5 }, { deadlineMs: '5' }, { deadline: 5 }])(
    'refuses options that are wrong, and starts nothing (case %#)',
    async (options) => {
      const outbox = lifecycleOf()

      await expect(outbox.drain(options as never)).rejects.toMatchObject({ code: 'OUTBOX_INVALID_OPTION' })
      expect(outbox.ran).toEqual([])
    },
  )
})

describe('health', () => {
  test('is not ok before a start, during it, after one that failed, and from the stop on', async () => {
    const { opened, open } = gate()
    const outbox = lifecycleOf({ answers: { read_applied_steps: broken } })
    const seen = [outbox.health()]
    await expect(outbox.start()).rejects.toThrow('no database')
    seen.push(outbox.health())
    outbox.answers['read_applied_steps'] = () => opened
    const starting = outbox.start()
    seen.push(outbox.health())
    open()
    await starting
    const running = outbox.health()
    const stopped = outbox.stop()
    seen.push(outbox.health())
    await stopped
    seen.push(outbox.health())

    const notRunning = { ok: false, reasons: ['it is not running'] }
    expect(seen.map(({ ok }) => ok)).toEqual([false, false, false, false, false])
    expect([seen[0], seen[1], seen[4]]).toEqual([notRunning, notRunning, notRunning])
    expect(seen[2]!.reasons).toEqual(['it is starting'])
    expect(running).toEqual({ ok: true, reasons: [] })
  })

  test('is not ok while claims fail, and is again when one succeeds', async () => {
    const outbox = lifecycleOf({ answers: { claim_messages: broken } })
    await outbox.start()
    await settled()
    const first = outbox.health()
    outbox.clock.advance(100)
    await settled()
    const second = outbox.health()
    outbox.answers['claim_messages'] = undefined
    outbox.clock.advance(200)
    await settled()
    const mended = outbox.health()
    await outbox.stop()

    expect([first.ok, second.ok]).toEqual([false, false])
    expect(second.reasons).toEqual([expect.stringContaining('2 claims failed')])
    expect(mended).toEqual({ ok: true, reasons: [] })
  })

  test('is not ok while what became of messages cannot be written, and is again when it can', async () => {
    const outbox = lifecycleOf({ answers: { delete_acked: broken } })
    outbox.ready.push('1')
    await outbox.start()
    await settled()
    const stuck = outbox.health()
    outbox.answers['delete_acked'] = undefined
    outbox.clock.advance(100)
    await settled()
    const mended = outbox.health()
    await outbox.stop()

    expect(stuck).toEqual({ ok: false, reasons: ['what became of messages cannot be written'] })
    expect(mended).toEqual({ ok: true, reasons: [] })
  })

  test('is ok while nobody listens, and says that messages may be late', async () => {
    const hearings: Hearing[] = []
    const listening = { run: async () => [], end: async () => {}, destroy: () => {} }
    const listen: Database['listen'] = async (channels, hearing) => {
      hearings.push({ ...hearing, notified: (_, payload) => hearing.notified(channels[1]!, payload) })
      return listening
    }
    const outbox = lifecycleOf({ listen, wake: 'always' })
    await outbox.start()
    await settled()
    const deaf = outbox.health()
    hearings[0]!.notified('', '')
    await settled()
    const hearing = outbox.health()
    await outbox.stop()

    expect(deaf).toEqual({ ok: true, reasons: [expect.stringContaining('does not listen')] })
    expect(hearing).toEqual({ ok: true, reasons: [] })
  })
})

describe('ping', () => {
  test('before a start asks the database, and nothing else', async () => {
    const outbox = lifecycleOf()

    expect(await outbox.ping()).toBe(true)
    expect([outbox.ran, vi.getTimerCount()]).toEqual([['ping'], 0])
  })

  test('is false and never a rejection when the database fails', async () => {
    expect(await lifecycleOf({ answers: { ping: broken } }).ping()).toBe(false)
    expect(vi.getTimerCount()).toBe(0)
  })

  test.each([
    [undefined, 5_000],
    [{ timeoutMs: 250 }, 250],
  ])('with %j is false when there is no answer within %i ms, and no earlier', async (options, ms) => {
    const outbox = lifecycleOf({ answers: { ping: never } })
    const answers: boolean[] = []
    const asked = outbox.ping(options).then((answer) => answers.push(answer))
    await settled()
    vi.advanceTimersByTime(ms - 1)
    await settled()
    const early = [...answers]
    vi.advanceTimersByTime(1)
    await asked

    expect([early, answers]).toEqual([[], [false]])
  })

  test('of an outbox that was started is true only while it is at work, and asks the database as well', async () => {
    const outbox = lifecycleOf()
    await outbox.start()
    await settled()
    const atWork = await outbox.ping()
    outbox.answers['ping'] = broken
    const unanswered = await outbox.ping()
    outbox.answers['ping'] = undefined
    await outbox.stop()
    const stopped = await outbox.ping()

    expect([atWork, unanswered, stopped]).toEqual([true, false, false])
    expect(outbox.ran.filter((name) => name === 'ping')).toHaveLength(2)
  })

  test('of an outbox whose claims fail is false', async () => {
    const outbox = lifecycleOf({ answers: { claim_messages: broken } })
    await outbox.start()
    await settled()
    const answer = await outbox.ping()
    await outbox.stop()

    expect(answer).toBe(false)
  })

  test.each([null, 5, { timeoutMs: 0 }, { timeoutMs: Number.NaN }, { timeout: 5 }])(
    'refuses options that are wrong, and asks nobody (case %#)',
    async (options) => {
      const outbox = lifecycleOf()

      await expect(outbox.ping(options as never)).rejects.toMatchObject({ code: 'OUTBOX_INVALID_OPTION' })
      expect(outbox.ran).toEqual([])
    },
  )
})
