import { describe, expect, test } from 'vitest'
import type { OutboxEvent } from './core/events.ts'
import type { LogEntry } from './core/log.ts'
import { hear, type OnEvent } from './hear.ts'
import { createTelling } from './telling.ts'

const about = { queue: 'orders', handler: 'ship', id: 'id-1', seq: '1', attempt: 1, deliveries: 1 }
const acked: OutboxEvent = { kind: 'acked', ...about, durationMs: 5, followOns: 0 }
const broken = new Error('no metrics today')
const retried: OutboxEvent = { kind: 'retried', ...about, durationMs: 5, delayMs: 50, error: broken }

/** Everything that was heard and logged, in its order. */
function tellingOf(onEvent?: OnEvent) {
  const order: string[] = []
  const log: LogEntry[] = []
  const logger = (entry: LogEntry): void => {
    log.push(entry)
    order.push(`log ${entry.message}`)
  }
  const heard: OnEvent = (event) => {
    order.push(`event ${event.kind}`)
    return onEvent?.(event)
  }
  return { telling: createTelling({ onEvent: onEvent && heard, logger }), log, order, logger }
}

/** Resolves when everything that could run without waiting has run. */
const idle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** What no handler heard of, and Node would end the process for. */
async function unhandledDuring(work: () => void): Promise<unknown[]> {
  const unhandled: unknown[] = []
  const note = (reason: unknown): void => void unhandled.push(reason)
  process.on('unhandledRejection', note)
  work()
  await idle()
  process.off('unhandledRejection', note)
  return unhandled
}

const likePromise = {
  // biome-ignore lint/suspicious/noThenProperty: whatever has one is awaited by others, too
  then: (_done: unknown, fail: (error: Error) => void): void => fail(broken),
}

const complaint = { level: 'warn', message: 'onEvent failed', fields: { event: 'acked' }, error: broken }

describe('telling', () => {
  test('gives each event to onEvent as it is, then prints those that the table logs', () => {
    const got: OutboxEvent[] = []
    const { telling, order } = tellingOf((event) => got.push(event))
    telling.tell(acked)
    telling.tell(retried)

    expect(got).toEqual([acked, retried])
    expect(got[0]).toBe(acked)
    expect(order).toEqual(['event acked', 'event retried', 'log handler failed, message will be retried'])
  })

  test('prints without onEvent, too', () => {
    const { telling, log } = tellingOf()
    telling.tell(acked)
    telling.tell(retried)

    expect(log).toMatchObject([{ event: 'retried', level: 'warn', error: broken }])
  })

  test('is heard when there is an onEvent, and only then', () => {
    expect([tellingOf(() => {}).telling.isHeard, tellingOf().telling.isHeard]).toEqual([true, false])
  })

  test('swallows and logs what onEvent throws, each time, and still prints the event (U-MET-03)', () => {
    const { telling, log } = tellingOf(() => {
      throw broken
    })
    telling.tell(acked)
    telling.tell(retried)

    expect(log).toMatchObject([
      complaint,
      { ...complaint, fields: { event: 'retried' } },
      { level: 'warn', event: 'retried' },
    ])
  })

  test.each<[string, OnEvent]>([
    ['a promise', async () => Promise.reject(broken)],
    ['something like a promise', () => likePromise],
  ])('swallows and logs what %s of onEvent is rejected with', async (_what, onEvent) => {
    const { telling, log } = tellingOf(onEvent)
    const unhandled = await unhandledDuring(() => telling.tell(acked))

    expect([log, unhandled]).toEqual([[complaint], []])
  })

  test('swallows and logs what is thrown by looking whether the answer of onEvent is a promise', () => {
    const refuse = (): never => {
      throw broken
    }
    const hostile = Object.defineProperty({}, 'then', { get: refuse })
    const { telling, log } = tellingOf(() => hostile)
    telling.tell(acked)

    expect(log).toEqual([complaint])
  })

  test.each<[string, OnEvent]>([
    ['a promise that never ends', () => new Promise(() => {})],
    ['null', () => null],
    ['a number', () => 1],
    ['an object', () => ({})],
  ])('does not mind an onEvent that returns %s', async (_what, onEvent) => {
    const { telling, log, order } = tellingOf(onEvent)
    telling.tell(acked)
    telling.tell(acked)
    await idle()

    expect([order, log]).toEqual([['event acked', 'event acked'], []])
  })
})

describe('hear', () => {
  test('does nothing without an onEvent', () => {
    const { logger, order } = tellingOf()
    hear(undefined, acked, logger)

    expect(order).toEqual([])
  })
})
