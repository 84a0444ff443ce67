import { describe, expect, test } from 'vitest'
import type { OutboxEvent } from './core/events.ts'
import type { LogEntry } from './core/log.ts'
import type { PublishCall } from './core/middleware.ts'
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

/** A handle that cannot tell whether it is in a transaction (an old pg client), over a session that can. */
function untelling(inside: boolean, rows: readonly unknown[] = []) {
  const asked: string[] = []
  let mark: unknown
  const query = async (text: string, values: readonly unknown[]) => {
    asked.push(text.trim().slice(0, 17))
    if (text.includes('set_config')) mark = inside ? values[0] : undefined
    if (text.includes('as inside')) return { rows: [{ inside: String(mark === values[0]) }] }
    const sees = mark !== undefined && values.at(-1) === mark
    return { rows: sees ? rows : [] }
  }
  return { asked, tx: { query, connect: () => {}, escapeIdentifier: () => {} } }
}

describe('where the handle cannot tell', () => {
  const row = { id: '0190163d-8694-739b-9aea-966c26f8ad91', seq: '1' }

  test('every entry point is refused outside a transaction, an empty batch included', async () => {
    const codes = await codesOf(entryPoints(untelling(false).tx, 'orders'))

    expect(new Set(codes)).toEqual(new Set(['OUTBOX_NOT_IN_TRANSACTION']))
  })

  test('every entry point is served inside one, an empty batch included', async () => {
    const codes = await codesOf(entryPoints(untelling(true).tx, 'orders'))

    expect(new Set(codes)).toEqual(new Set(['accepted']))
  })

  test('a publish costs one statement more: the mark, right before it', async () => {
    const { asked, tx } = untelling(true, [row])
    const receipt = await outbox.publish(anything(tx), 'orders', 1)

    expect(receipt).toEqual(row)
    expect(asked).toEqual(['select set_config', 'insert into "publ'])
  })

  test('a timer that was kept is told from a transaction that was not there', async () => {
    const { asked, tx } = untelling(true)

    expect(await outbox.publish(anything(tx), 'orders', 1, { timerId: 't' })).toBeNull()
    expect(asked).toEqual(['select set_config', 'insert into "publ', 'select (current_s'])
  })

  test('messages published at once on one connection do not take each other’s mark for its end', async () => {
    const { tx } = untelling(true, [row])
    const publishing = [1, 2, 3].map((body) => outbox.publish(anything(tx), 'orders', body))

    expect(await Promise.all(publishing)).toEqual([row, row, row])
  })

  // pg warns of a client that is given a statement while others wait for it.
  test('the mark is waited for before the statement is sent', async () => {
    let waiting = 0
    const most: number[] = []
    const { tx } = untelling(true, [row])
    const query = async (text: string, values: readonly unknown[]) => {
      most.push(++waiting)
      await Promise.resolve()
      const answer = await tx.query(text, values)
      waiting--
      return answer
    }
    for (const published of [[1], []])
      await outbox.publishMany(anything({ ...tx, query }), 'orders', published)

    // The mark and the insert, then, for the empty batch, the mark and the question whether it is there.
    expect(most).toEqual([1, 1, 1, 1])
  })

  test('a transaction that ends between the mark and the statement is refused', async () => {
    const { asked, tx } = untelling(true, [row])
    const query = async (text: string, values: readonly unknown[]) => {
      if (!text.includes('set_config')) await tx.query("select set_config('', '', true)", [undefined])
      return tx.query(text, values)
    }

    expect(await codesOf([outbox.publish(anything({ ...tx, query }), 'orders', 1)])).toEqual([
      'OUTBOX_NOT_IN_TRANSACTION',
    ])
    expect(asked).toContain('insert into "publ')
  })

  test.each(['set_config', 'insert into'])('an error of the database is passed on (%s)', async (failing) => {
    const { tx } = untelling(true, [row])
    const broken = new Error('connection lost')
    const query = async (text: string, values: readonly unknown[]) => {
      if (text.includes(failing)) throw broken
      return tx.query(text, values)
    }

    await expect(outbox.publish(anything({ ...tx, query }), 'orders', 1)).rejects.toBe(broken)
  })

  test('a handle that can tell is not asked to mark anything', async () => {
    const { asked, tx } = untouched()
    await Promise.all(entryPoints(tx, 'orders'))

    expect(asked.filter((text) => /set_config|as inside/.test(text))).toEqual([])
  })
})

describe('the receipt', () => {
  const row = { id: '0190163d-8694-739b-9aea-966c26f8ad91', seq: '1', woken: 0 }
  const answering = (...rows: object[]) => ({ query: async () => rows, inTransaction: true })

  test('is the id of the message and the seq of its row, and nothing else', async () => {
    const { id } = row
    const written = { seq: '1', woken: false }

    expect(await outbox.publish(answering(written), 'orders', 1, { id })).toEqual({ id, seq: '1' })
    expect(await outbox.publishMany(answering(written), 'orders', [1], { id })).toEqual([{ id, seq: '1' }])
  })

  test('of several messages stands in the order of the bodies, and is null for one that was not written', async () => {
    const ids = ['a', 'b', 'c'].map((last) => `${row.id.slice(0, -1)}${last}`)
    const each = (_: unknown, index: number) => ({ id: ids[index] as string })
    const publish = (answer: object) => outbox.publishMany(answering(answer), 'orders', [1, 2, 3], each)
    const [first, , third] = ids

    expect(await publish({ id: null, seq: '7,8,9' })).toEqual(
      ids.map((id, index) => ({ id, seq: `${index + 7}` })),
    )
    expect(await publish({ id: `${first},${third}`, seq: '7,9' })).toEqual([
      { id: first, seq: '7' },
      null,
      { id: third, seq: '9' },
    ])
    await expect(publish({ Id: 'a,c', seq: '7,9' })).rejects.toMatchObject({ code: 'OUTBOX_UNKNOWN_HANDLE' })
  })

  // postgres.js with `transform: { column: … }`, or an own `query` that renames.
  test.each([{ ID: row.id, SEQ: '1' }, { id: row.id, Seq: '1' }, {}])(
    'of a client that renames columns is an error that says the message was written (case %#)',
    async (renamed) => {
      const tx = answering(renamed)
      const attempts = [outbox.publish(tx, 'orders', 1), outbox.publishMany(tx, 'orders', [1])]

      for (const attempt of attempts) {
        await expect(attempt).rejects.toMatchObject({
          code: 'OUTBOX_UNKNOWN_HANDLE',
          message: expect.stringMatching(/^the message was written, but the client renames the columns/),
        })
      }
    },
  )
})

describe('publishing', () => {
  // U-PUB-05
  test('is one statement: nothing is begun, committed or flushed', async () => {
    const { asked, tx } = untouched()
    await outbox.publish(tx, 'orders', { a: 1 })
    await outbox.publishMany(tx, 'orders', [1, 2, 3])

    expect(asked.map((text) => text.trim().slice(0, 4))).toEqual(['inse', 'with'])
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

describe('middleware', () => {
  test('sees as many bodies as there are messages, whatever the caller does to its list meanwhile', async () => {
    const seen: unknown[] = []
    const publish = async ({ bodies }: PublishCall): Promise<null[]> => {
      seen.push(...bodies)
      return bodies.map(() => null)
    }
    const listed = [1, 2]
    const publishing = createOutbox({ middleware: [{ publish }] }).publishMany(
      untouched().tx,
      'orders',
      listed,
    )
    listed.push(3)

    expect(await publishing).toEqual([null, null])
    expect(seen).toEqual([1, 2])
  })
})

describe('published', () => {
  const row = { id: '0190163d-8694-739b-9aea-966c26f8ad91', seq: '1' }
  const broken = new Error('connection lost')

  /** An outbox that tells what it publishes, and a transaction that answers with these rows. */
  function telling(answer: () => Promise<readonly unknown[]>) {
    const events: OutboxEvent[] = []
    const outbox = createOutbox({
      queues: { orders: {} },
      database: { query: answer, transaction: () => Promise.reject(broken) },
      onEvent: (event) => events.push(event),
    })
    return { events, outbox, tx: { query: answer, inTransaction: true } }
  }

  // U-MET-07
  test('is told with count and bytes after the statement, by every way of publishing', async () => {
    const { events, outbox, tx } = telling(async () => [row])
    await outbox.publish(tx, 'orders', 'four')
    await outbox.publishNow('orders', 'four')
    await outbox.in(tx).publish('orders', 'four')

    const event = { kind: 'published', queue: 'orders', count: 1, bytes: 4, durationMs: expect.any(Number) }
    expect(events).toEqual([event, event, event])
    expect(events.every((told) => told.kind === 'published' && told.durationMs >= 0)).toBe(true)
  })

  test('is told once for a batch, with the rows that were written and the bytes of all bodies', async () => {
    const { events, outbox, tx } = telling(async () => [row, { ...row, id: 'other' }])
    await outbox.publishMany(tx, 'orders', ['four', 'three'])

    expect(events).toMatchObject([{ kind: 'published', count: 2, bytes: 9 }])
  })

  test('counts nothing for a timer that was kept, which is no error', async () => {
    const { events, outbox, tx } = telling(async () => [])
    await outbox.publish(tx, 'orders', 1, { timerId: 't' })

    expect(events).toMatchObject([{ count: 0 }])
    expect(events[0]).not.toHaveProperty('error')
  })

  test('is told of a statement that failed, with its error, which is thrown as it was', async () => {
    const { events, outbox, tx } = telling(() => Promise.reject(broken))

    await expect(outbox.publish(tx, 'orders', 'four')).rejects.toBe(broken)
    expect(events).toMatchObject([{ kind: 'published', count: 0, bytes: 4, error: broken }])
  })

  test('is not told of what was refused before, nor of a batch of none', async () => {
    const { events, outbox, tx } = telling(async () => [row])
    const outside = { ...tx, inTransaction: false }
    await codesOf([
      outbox.publish(tx, 'orders', 1n),
      outbox.publish(outside, 'orders', 1),
      outbox.publishMany(tx, 'orders', [1n]),
      outbox.publishMany(tx, 'orders', []),
    ])

    expect(events).toEqual([])
  })

  test('puts nothing between the question whether the handle is in a transaction and the statement', async () => {
    const { outbox } = telling(async () => [row])
    const order: string[] = []
    const inTransaction = (): boolean => {
      order.push('asked')
      queueMicrotask(() => order.push('a pause'))
      return true
    }
    const query = async (): Promise<readonly unknown[]> => {
      order.push('sent')
      return [row]
    }
    await outbox.publish({ query, inTransaction }, 'orders', 1)

    expect(order).toEqual(['asked', 'sent', 'a pause'])
  })

  test('a listener and a logger that both throw change nothing', async () => {
    const outbox = createOutbox({
      onEvent: () => expect.fail('onEvent'),
      logger: () => expect.fail('logger'),
    })
    const tx = { query: async () => [row], inTransaction: true }

    expect(await outbox.publish(tx, 'orders', 1)).toEqual(row)
  })

  test('a listener that throws changes nothing: it is logged', async () => {
    const logged: LogEntry[] = []
    const onEvent = (): never => expect.fail('onEvent')
    const outbox = createOutbox({ onEvent, logger: (entry) => logged.push(entry) })
    const tx = { query: async () => [row], inTransaction: true }

    expect(await outbox.publish(tx, 'orders', 1)).toEqual(row)
    expect(logged).toMatchObject([{ level: 'warn', fields: { event: 'published' } }])
  })
})
