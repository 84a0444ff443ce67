import type { Outbox } from 'postbox'
import { expect, test } from 'vitest'
import type { Database, Executor } from '../../packages/postbox/src/adapters/executor.ts'
import { sqlStateOf } from '../../packages/postbox/src/core/sql-state.ts'
import type { Inside } from './clients.ts'

export interface OpenedTransactions {
  readonly opener: Pick<Database, 'transaction'>
  readonly outbox: Outbox
  /** The application's own way to use its client's transaction. */
  inside(handle: unknown): Inside
}

export interface TransactionSuite {
  /** Its sessions begin with these settings (`-c name=value`). */
  open(settings?: string): Promise<OpenedTransactions>
  /** Asks the database by another way than the client under test. */
  query(text: string): Promise<readonly Record<string, unknown>[]>
  readonly messages: () => string
  /** Whether the client lets one say which isolation a transaction begins in. */
  readonly saysIsolation: boolean
}

const rolledBack = new Error('rolled back on purpose')
const statement = (text: string) => ({ name: 'conformance', text, values: [], input: null })

/** What a transaction of ours must be on every client: ours and the application's at once. */
export function testTransactions({ open, query, messages, saysIsolation }: TransactionSuite): void {
  const write = (tx: Executor, queue: string): Promise<unknown> =>
    tx.run(
      statement(
        `insert into ${messages()} (id, queue, body) values (gen_random_uuid(), '${queue}', '1'::bytea)`,
      ),
    )
  const writeThrice = async ({ outbox, inside }: OpenedTransactions, tx: Executor, handle: unknown) => {
    await write(tx, 'executor')
    await inside(handle).run(
      `insert into ${messages()} (id, queue, body) values (gen_random_uuid(), 'application', '1'::bytea)`,
    )
    await outbox.publish(handle as never, 'published', 1)
    // Each sees what the others have done: it is one transaction.
    return tx.run<{ queue: string }>(statement(`select queue from ${messages()} order by queue`))
  }
  const queues = async (): Promise<unknown[]> =>
    (await query(`select queue from ${messages()} order by queue`)).map(({ queue }) => queue)

  test('what our statements, the application’s SQL and publish do in a transaction of ours is committed together', async () => {
    const opened = await open()

    const seen = await opened.opener.transaction((tx, handle) => writeThrice(opened, tx, handle))

    expect(seen.map(({ queue }) => queue)).toEqual(['application', 'executor', 'published'])
    expect(await queues()).toEqual(['application', 'executor', 'published'])
  })

  test('and rolled back together when the work throws, whose error comes out as it was thrown', async () => {
    const opened = await open()

    const work = opened.opener.transaction(async (tx, handle) => {
      await writeThrice(opened, tx, handle)
      throw rolledBack
    })

    await expect(work).rejects.toBe(rolledBack)
    expect(await queues()).toEqual([])
  })

  test('a savepoint of the application takes back only what was done in it', async () => {
    const { opener, outbox, inside } = await open()

    await opener.transaction(async (tx, handle) => {
      await write(tx, 'before')
      await inside(handle).savepoint(async (inner) => {
        await outbox.publish(inner.handle as never, 'inside', 1)
        throw rolledBack
      })
      await write(tx, 'after')
    })

    expect(await queues()).toEqual(['after', 'before'])
  })

  test('a statement that Postgres refuses says why, and what was done before it is gone', async () => {
    const { opener } = await open()

    const work = opener.transaction(async (tx) => {
      await write(tx, 'executor')
      await tx.run(statement('select 1 / 0'))
    })

    await expect(work).rejects.toSatisfy((error) => sqlStateOf(error) === '22012')
    expect(await queues()).toEqual([])
  })

  if (!saysIsolation) return

  test('a transaction of ours is read committed, where the default is repeatable read', async () => {
    const { opener } = await open('-c default_transaction_isolation=repeatable\\ read')

    const rows = await opener.transaction((tx) =>
      tx.run<{ level: string }>(
        statement(
          `select current_setting('transaction_isolation') as level, current_setting('default_transaction_isolation') as usual`,
        ),
      ),
    )

    expect(rows).toEqual([{ level: 'read committed', usual: 'repeatable read' }])
  })
}
