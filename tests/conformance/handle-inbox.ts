// biome-ignore-all lint/suspicious/noExplicitAny: the suite does not know whose transaction it has
import { type Outbox, OutboxError } from 'postbox'
import { beforeEach, expect, test } from 'vitest'
import { sqlStateOf } from '../../packages/postbox/src/core/sql-state.ts'
import type { ClientUnderTest } from './clients.ts'

const rolledBack = new Error('rolled back on purpose')

interface HandleInbox {
  client(): ClientUnderTest
  outbox(): Outbox<any>
  /** The table of what was handled. */
  handled(): string
}

/** What the inbox must do through every client's transaction. */
export function describeHandleInbox({ client, outbox, handled }: HandleInbox): void {
  const published = (): Promise<unknown[]> =>
    client().transaction(async ({ handle }) =>
      (await outbox().pending(handle as any)).map(({ body }) => body),
    )
  const message = { consumer: 'billing', id: `"ünïcode" '1' 🚚` }
  const once = (handle: unknown, work: () => unknown = () => 'done') =>
    outbox().inbox.once(handle as any, message, work)

  beforeEach(() => client().query(`delete from ${handled()}`))

  test('a message is handled once, with the rows of its transaction, by exactly one statement', async () => {
    const sent = await client().transaction(async ({ handle }) => {
      const before = client().statements().length
      const first = await once(handle, () => outbox().publish(handle as any, 'orders', 'invoice'))
      expect(first).toMatchObject({ ran: true, value: { seq: expect.any(String) } })
      return client().statements().slice(before)
    })
    const second = await client().transaction(({ handle }) => once(handle))

    expect(second).toEqual({ ran: false, because: 'duplicate' })
    expect(sent.filter((text) => text.includes('_handled"'))).toHaveLength(1)
    expect(await published()).toEqual(['invoice'])
    expect(await client().query(`select consumer, id from ${handled()}`)).toEqual([message])
  })

  test('one that is rolled back, or taken back with a savepoint, was not handled', async () => {
    const rolling = client().transaction(async ({ handle }) => {
      await once(handle)
      throw rolledBack
    })
    await expect(rolling).rejects.toBe(rolledBack)

    const results = await client().transaction(async ({ handle, savepoint }) => {
      await savepoint(async (inner) => {
        await once(inner.handle)
        throw rolledBack
      })
      return [await once(handle), await once(handle)]
    })
    expect(results).toEqual([
      { ran: true, value: 'done' },
      { ran: false, because: 'duplicate' },
    ])
  })

  test('work that throws has not handled it, whatever the caller then commits', async () => {
    await client().transaction(async ({ handle }) => {
      await expect(once(handle, () => Promise.reject(rolledBack))).rejects.toBe(rolledBack)
      await outbox().publish(handle as any, 'orders', 'committed')
    })

    expect(await published()).toEqual(['committed'])
    expect(await client().transaction(({ handle }) => once(handle))).toEqual({ ran: true, value: 'done' })
  })

  test('work that fails the transaction gives its own error, and nothing was handled', async () => {
    const failing = client().transaction(({ handle, run }) =>
      once(handle, () => run('select 1 / 0').then(() => 'not reached')),
    )

    // Drizzle wraps it.
    expect(sqlStateOf(await failing.catch((error: unknown) => error))).toBe('22012')
    expect(await client().query(`select id from ${handled()}`)).toEqual([])
  })

  test('a refusal leaves the transaction usable', async () => {
    await client().transaction(async ({ handle }) => {
      const refusal = outbox().inbox.once(handle as any, { ...message, id: 'a\0' }, () => 'done')
      await expect(refusal).rejects.toSatisfy((error) => OutboxError.is(error, 'OUTBOX_INVALID_OPTION'))
      expect(await once(handle)).toEqual({ ran: true, value: 'done' })
    })
  })

  test('what is older is purged', async () => {
    await client().transaction(({ handle }) => once(handle))

    expect(await outbox().inbox.purge({ olderThanMs: 3_600_000 })).toEqual({ purged: 0 })
    await client().query(`update ${handled()} set handled_at = handled_at - interval '2 hours'`)
    expect(await outbox().inbox.purge({ olderThanMs: 3_600_000 })).toEqual({ purged: 1 })
  })
}
