import { describe, expect, test } from 'vitest'
import { createOutbox } from './outbox.ts'

const outbox = createOutbox({ queues: { orders: {} }, maxBodyBytes: 100 })

/** A handle inside a transaction that must not be used: what it was asked is the evidence. */
function untouched() {
  const asked: string[] = []
  const query = async (text: string): Promise<never[]> => {
    asked.push(text)
    return []
  }
  return { asked, tx: { query, inTransaction: true } }
}

const anything = (value: unknown): never => value as never

/** Every entry point, with input that is right but for what is passed. */
function entryPoints(tx: unknown, queue: string): Promise<unknown>[] {
  return [
    outbox.publish(anything(tx), queue as 'orders', { a: 1 }),
    outbox.publishMany(anything(tx), queue as 'orders', [{ a: 1 }]),
    outbox.publishMany(anything(tx), queue as 'orders', []),
    outbox.cancelTimer(anything(tx), queue as 'orders', 't'),
    outbox.pending(anything(tx), { queue: queue as 'orders' }),
  ]
}

async function codesOf(attempts: Promise<unknown>[]): Promise<unknown[]> {
  const results = await Promise.allSettled(attempts)
  return results.map((result) => (result.status === 'rejected' ? result.reason.code : 'accepted'))
}

describe('every entry point', () => {
  // U-PUB-02
  test.each([undefined, null, 'orders', {}, { query: () => [] }])(
    'refuses what is no handle (case %#)',
    async (tx) => {
      expect(new Set(await codesOf(entryPoints(tx, 'orders')))).toEqual(new Set(['OUTBOX_UNKNOWN_HANDLE']))
    },
  )

  // U-PUB-14, U-PUB-17
  test.each([
    ['', 'OUTBOX_INVALID_QUEUE'],
    ['x'.repeat(256), 'OUTBOX_INVALID_QUEUE'],
    ['ordres', 'OUTBOX_UNKNOWN_QUEUE'],
    ['__proto__', 'OUTBOX_UNKNOWN_QUEUE'],
  ])('refuses the queue %j before any SQL, an empty batch included', async (queue, code) => {
    const { asked, tx } = untouched()

    expect(new Set(await codesOf(entryPoints(tx, queue)))).toEqual(new Set([code]))
    expect(asked).toEqual([])
  })

  test('refuses a handle outside a transaction before any SQL, an empty batch included', async () => {
    const { asked, tx } = untouched()
    const codes = await codesOf(entryPoints({ ...tx, inTransaction: false }, 'orders'))

    expect(new Set(codes)).toEqual(new Set(['OUTBOX_NOT_IN_TRANSACTION']))
    expect(asked).toEqual([])
  })

  test('tells a wrong handle before a wrong queue, and a wrong queue before a handle outside a transaction', async () => {
    const outside = { ...untouched().tx, inTransaction: false }

    expect(new Set(await codesOf(entryPoints(null, '')))).toEqual(new Set(['OUTBOX_UNKNOWN_HANDLE']))
    expect(new Set(await codesOf(entryPoints(outside, '')))).toEqual(new Set(['OUTBOX_INVALID_QUEUE']))
  })
})

describe('publishing', () => {
  // U-PUB-05
  test('is one statement: nothing is begun, committed or flushed', async () => {
    const { asked, tx } = untouched()
    await outbox.publish(tx, 'orders', { a: 1 })
    await outbox.publishMany(tx, 'orders', [1, 2, 3])

    expect(asked.map((text) => text.trim().slice(0, 4))).toEqual(['with', 'with'])
  })

  test.each([
    [{ a: 1n }, {}, 'OUTBOX_INVALID_BODY'],
    ['x'.repeat(101), {}, 'OUTBOX_BODY_TOO_LARGE'],
    [1, { key: 'a\u0000' }, 'OUTBOX_INVALID_OPTION'],
    [1, { headers: { a: 1 } }, 'OUTBOX_INVALID_HEADERS'],
    [1, { delayMs: 1, at: new Date() }, 'OUTBOX_INVALID_TIME'],
    [1, { at: new Date(Number.NaN) }, 'OUTBOX_INVALID_TIME'],
  ])('refuses wrong input before any SQL (case %#)', async (body, options, code) => {
    const { asked, tx } = untouched()
    const attempts = [
      outbox.publish(tx, 'orders', body, anything(options)),
      outbox.publishMany(tx, 'orders', [body], anything(options)),
    ]

    expect(await codesOf(attempts)).toEqual([code, code])
    expect(asked).toEqual([])
  })

  test.each(['', 'a\u0000', 7, null, 'x'.repeat(1_025)])('cancels no timer called %j', async (timerId) => {
    const { asked, tx } = untouched()

    expect(await codesOf([outbox.cancelTimer(tx, 'orders', anything(timerId))])).toEqual([
      'OUTBOX_INVALID_OPTION',
    ])
    expect(asked).toEqual([])
  })

  // U-PUB-21
  test.each([{ limit: 0 }, { limit: 1.5 }, { limit: 100_001 }, { limt: 5 }, null])(
    'peeks at nothing with wrong options (case %#)',
    async (options) => {
      const { asked, tx } = untouched()

      expect(await codesOf([outbox.pending(tx, anything(options))])).toEqual(['OUTBOX_INVALID_OPTION'])
      expect(asked).toEqual([])
    },
  )

  // U-PUB-25
  test('without a database an outbox cannot publish on its own, start or migrate, and says so', async () => {
    const attempts = [outbox.publishNow('orders', 1), outbox.start(), outbox.run(), outbox.migrate()]

    expect(new Set(await codesOf(attempts))).toEqual(new Set(['OUTBOX_NO_DATABASE']))
  })
})
