import { expect, test } from 'vitest'
import type { Executor } from '../../packages/postbox/src/adapters/executor.ts'
import { forgetHandled } from '../../packages/postbox/src/sql/forget-handled.ts'
import { type Handled, markHandled } from '../../packages/postbox/src/sql/mark-handled.ts'
import { markTransaction } from '../../packages/postbox/src/sql/mark-transaction.ts'
import { purgeHandled } from '../../packages/postbox/src/sql/purge-handled.ts'
import { releaseLeases } from '../../packages/postbox/src/sql/release-leases.ts'
import { stateOf } from '../support/settle-bench.ts'
import { minute, type StoreBench } from './store-bench.ts'
import { outboxBench } from './store-outbox-bench.ts'

const billing: Handled = { consumer: 'billing', id: 'order-1', mark: null }
const daily = { timerId: 'daily' }
type Which = Partial<Handled>

interface Marking {
  mark(which?: Which, on?: Executor): Promise<string | undefined>
  forget(which?: Which, on?: Executor): Promise<readonly string[]>
  purge(given?: { olderThanMs?: number; consumer?: string; limit?: number }): Promise<number>
}

function markingOn(bench: StoreBench): Marking {
  return {
    async mark(which, on = bench.store.database) {
      const [row] = await on.run(markHandled(bench.names, { ...billing, ...which }))
      return row?.answer
    },
    async forget(which, on = bench.store.database) {
      const rows = await on.run(forgetHandled(bench.names, { ...billing, ...which }))
      return rows.map(({ id }) => id)
    },
    async purge({ olderThanMs = 0, consumer = null as string | null, limit = 100 } = {}) {
      const [row] = await bench.run(purgeHandled(bench.names, { olderThanMs, consumer, limit }))
      return Number(row!.purged)
    },
  }
}

/** What is remembered of messages that were handled. */
export function describeInbox(bench: StoreBench): void {
  const { mark, forget, purge } = markingOn(bench)
  const { open, inTransaction } = outboxBench(bench)

  test('a message is marked once for each consumer', async () => {
    const answers = []
    for (const which of [{}, {}, { id: 'order-2' }, { consumer: 'shipping' }, { consumer: 'shipping' }])
      answers.push(await mark(which))

    expect(answers).toEqual(['marked', 'duplicate', 'marked', 'marked', 'duplicate'])
  })

  test.each([
    ['letters with accents', 'ünïcode'],
    ['other letters with the same look', 'u\u0308ni\u0308code'],
    ['an emoji', '🚚'],
    ['quotes', `'"$1\\`],
    ['a line break', 'a\nb'],
    ['nothing but a blank', ' '],
    ['1,024 bytes', 'x'.repeat(1_024)],
  ])('an id may be any text: %s', async (_, id) => {
    expect([await mark({ id }), await mark({ id }), await mark({ id: id.slice(0, -1) || '-' })]).toEqual([
      'marked',
      'duplicate',
      'marked',
    ])
    expect(await forget({ id })).toEqual([id])
  })

  test('where consumer ends and id begins makes a difference', async () => {
    expect(await mark({ consumer: 'a', id: 'bc' })).toBe('marked')
    expect(await mark({ consumer: 'ab', id: 'c' })).toBe('marked')
  })

  test('a transaction sees its own mark, and takes it back', async () => {
    const tx = await bench.store.begin()
    const answers = [await mark({}, tx), await mark({}, tx), await forget({}, tx), await forget({}, tx)]
    const again = await mark({}, tx)
    await forget({}, tx)
    await tx.commit()

    expect([...answers, again]).toEqual(['marked', 'duplicate', ['order-1'], [], 'marked'])
    expect(await mark()).toBe('marked')
  })

  test('a mark is there when its transaction commits, and not when it rolls back', async () => {
    const lost = await bench.store.begin()
    await mark({}, lost)
    await lost.rollback()
    const tx = await bench.store.begin()
    const first = await mark({}, tx)
    await tx.commit()

    expect([first, await mark()]).toEqual(['marked', 'duplicate'])
  })

  test('nothing is marked or taken back where the mark of the transaction is gone', async () => {
    await mark({ id: 'kept' })
    await bench.run(markTransaction('open'))

    expect([await mark({ mark: 'open' }), await forget({ id: 'kept', mark: 'open' })]).toEqual([
      undefined,
      [],
    ])
    expect([await mark(), await mark({ id: 'kept' })]).toEqual(['marked', 'duplicate'])
  })

  test('in a transaction that was marked it is', async () => {
    const tx = await bench.store.begin()
    await tx.run(markTransaction('open'))
    const answer = await mark({ mark: 'open' }, tx)
    await tx.commit()

    expect(answer).toBe('marked')
  })

  test('what is older is purged, oldest first, up to a limit, and may then be handled again', async () => {
    for (const id of ['a', 'b', 'c']) {
      await mark({ id })
      await bench.store.advance(minute)
    }

    expect(await purge({ olderThanMs: 3.5 * minute })).toBe(0)
    expect(await purge({ olderThanMs: 1.5 * minute, limit: 1 })).toBe(1)
    expect([await mark({ id: 'a' }), await mark({ id: 'b' }), await mark({ id: 'c' })]).toEqual([
      'marked',
      'duplicate',
      'duplicate',
    ])
    expect([await purge({ olderThanMs: 1.5 * minute }), await purge({ olderThanMs: 1.5 * minute })]).toEqual([
      1, 0,
    ])
    expect([await mark({ id: 'b' }), await mark({ id: 'c' })]).toEqual(['marked', 'duplicate'])
  })

  test('what one consumer has handled is purged alone', async () => {
    for (const consumer of ['billing', 'bill', 'shipping']) await mark({ consumer })
    await bench.store.advance(minute)

    expect(await purge({ consumer: 'bill' })).toBe(1)
    expect([await mark({ consumer: 'billing' }), await mark({ consumer: 'bill' })]).toEqual([
      'duplicate',
      'marked',
    ])
  })

  test('an outbox runs the work once, tells a duplicate, and forgets', async () => {
    const { outbox } = open()
    const once = (id: string, work: () => unknown) =>
      inTransaction((tx) => outbox.inbox.once(tx, { consumer: 'billing', id }, work))
    const ran: string[] = []

    const results = []
    for (const id of ['a', 'b', 'a']) results.push(await once(id, () => ran.push(id)))

    expect(results).toEqual([
      { ran: true, value: 1 },
      { ran: true, value: 2 },
      { ran: false, because: 'duplicate' },
    ])
    await bench.store.advance(minute)
    expect(await outbox.inbox.purge({ olderThanMs: minute / 2 })).toEqual({ purged: 2 })
    expect(await once('a', () => 'again')).toEqual({ ran: true, value: 'again' })
    expect(ran).toEqual(['a', 'b'])
  })

  test('work that has thrown counts as not done, even where its caller commits', async () => {
    const { outbox } = open()
    const message = { consumer: 'billing', id: 'a' }
    const caught = await inTransaction((tx) =>
      outbox.inbox
        .once(tx, message, () => Promise.reject(new Error('mine')))
        .catch((error: Error) => error.message),
    )

    expect(caught).toBe('mine')
    expect(await inTransaction((tx) => outbox.inbox.once(tx, message, () => 'done'))).toEqual({
      ran: true,
      value: 'done',
    })
  })

  test('what the work published goes with it', async () => {
    const { outbox } = open()
    const message = { consumer: 'billing', id: 'a' }
    for (let n = 0; n < 2; n++)
      await inTransaction((tx) => outbox.inbox.once(tx, message, () => outbox.publish(tx, 'orders', n)))

    expect(await bench.rows()).toMatchObject([{ queue: 'orders', body: Buffer.from('0').toString('base64') }])
  })

  test('a transaction that has ended handles nothing', async () => {
    const { outbox } = open()
    const tx = await bench.store.begin()
    await tx.commit()
    const late = outbox.inbox.once(tx.handle as never, { consumer: 'billing', id: 'a' }, () => 'done')

    await expect(late).rejects.toMatchObject({ code: 'OUTBOX_NOT_IN_TRANSACTION' })
    expect(await mark({ id: 'a' })).toBe('marked')
  })
}

/** What others are told while a message is being handled. */
export function describeInboxes(bench: StoreBench): void {
  const { mark, forget, purge } = markingOn(bench)

  test.each([
    ['commit', 'duplicate'],
    ['rollback', 'marked'],
  ] as const)('others are busy until it ends, by %s, and are then told: %s', async (ending, answer) => {
    const tx = await bench.store.begin()
    await mark({}, tx)

    expect([await mark(), await mark({ id: 'order-2' }), await mark({ consumer: 'shipping' })]).toEqual([
      'busy',
      'marked',
      'marked',
    ])
    await tx[ending]()
    expect(await mark()).toBe(answer)
  })

  test('others are busy while it lasts, even after it has taken its mark back', async () => {
    const tx = await bench.store.begin()
    await mark({}, tx)
    await forget({}, tx)

    expect(await mark()).toBe('busy')
    await tx.commit()
    expect(await mark()).toBe('marked')
  })

  test('others are busy while a duplicate is looked at, too: nobody waits, nobody is lost', async () => {
    await mark()
    const tx = await bench.store.begin()
    const found = await mark({}, tx)

    expect([found, await mark()]).toEqual(['duplicate', 'busy'])
    await tx.commit()
    expect(await mark()).toBe('duplicate')
  })

  test('who finds it busy is not set back: his transaction goes on and commits', async () => {
    const [holder, other] = [await bench.store.begin(), await bench.store.begin()]
    await mark({}, holder)
    await bench.publish({ key: 'mine' }, other)
    const answers = [await mark({}, other)]
    await holder.rollback()
    answers.push(await mark({}, other))
    await other.commit()

    expect(answers).toEqual(['busy', 'marked'])
    expect(await bench.rows()).toMatchObject([{ key: 'mine' }])
  })

  test('two that come the wrong way round are both told, and do not wait for each other', async () => {
    const [one, two] = [await bench.store.begin(), await bench.store.begin()]
    const answers = [await mark({ id: 'a' }, one), await mark({ id: 'b' }, two)]
    answers.push(await mark({ id: 'b' }, one), await mark({ id: 'a' }, two))
    await one.commit()
    answers.push(await mark({ id: 'a' }, two))
    await two.commit()

    expect(answers).toEqual(['marked', 'marked', 'busy', 'busy', 'duplicate'])
  })

  test('a purge neither waits for a mark that is not committed nor takes it', async () => {
    await mark({ id: 'old' })
    await bench.store.advance(minute)
    const tx = await bench.store.begin()
    await mark({ id: 'new' }, tx)

    expect(await purge()).toBe(1)
    await tx.commit()
    expect(await mark({ id: 'new' })).toBe('duplicate')
  })

  test('a transaction that has failed has handled nothing', async () => {
    const fences = [...(await bench.hold([daily])), ...(await bench.hold([daily]))]
    const tx = await bench.store.begin()
    await mark({}, tx)

    expect(await stateOf(tx.run(releaseLeases(bench.names, fences, true)))).toBe('23505')
    expect(await stateOf(forget({}, tx))).toBe('25P02')
    await tx.commit()
    expect(await mark()).toBe('marked')
  })
}
