// A copy of the accounts, kept by their events: it is right only if they are applied in the order in which they were committed.
import type { PGlite } from '@electric-sql/pglite'
import { createOutbox, type Outbox } from 'postbox'
import { type AccountEvent, queues } from './queues.ts'

export type Accounts = Outbox<{ accounts: { in: AccountEvent; out: AccountEvent } }>

export function createDirectory(db: PGlite): Accounts {
  const outbox = createOutbox({ database: db, queues, logger: false })
  outbox.subscribe(
    'accounts',
    async ({ body: { account, kind, name } }, context) => {
      // The row and the end of the message are one commit: who has lost the key in the meantime changes nothing.
      await context.transaction(async (tx) => {
        if (kind === 'closed') await tx.query('delete from directory where account = $1', [account])
        else
          await tx.query(
            'insert into directory values ($1, $2) on conflict (account) do update set name = excluded.name',
            [account, name],
          )
      })
    },
    { concurrency: 20 },
  )
  return outbox
}

/** One statement for all of them: it takes the locks of the keys in an order of its own, so that two of these cannot deadlock. */
export async function renameAll(
  db: PGlite,
  outbox: Accounts,
  names: Readonly<Record<string, string>>,
): Promise<void> {
  const events = Object.entries(names).map(([account, name]) => ({ account, kind: 'renamed' as const, name }))
  await db.transaction((tx) =>
    outbox.publishMany(tx, 'accounts', events, ({ account }) => ({ key: account })),
  )
}
