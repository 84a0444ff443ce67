import { PGlite } from '@electric-sql/pglite'
import { createOutbox } from 'postbox'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createDirectory, renameAll } from './directory.ts'
import { queues } from './queues.ts'

let db: PGlite
const directory = async (): Promise<unknown[]> =>
  (await db.query('select account, name from directory order by account')).rows

beforeAll(async () => {
  db = await PGlite.create()
  await createOutbox({ database: db, queues }).migrate()
  await db.exec('create table directory (account text primary key, name text)')
}, 60_000)
afterAll(() => db.close())
beforeEach(() => db.exec('truncate outbox, outbox_dead, directory'))

const opened = (account: string, name: string) => ({ account, kind: 'opened', name }) as const
const renamed = (account: string, name: string) => ({ account, kind: 'renamed', name }) as const

test('events of an account are applied in the order of their commits, twenty accounts at a time', async () => {
  const outbox = createDirectory(db)
  for (const name of ['Ann', 'Anne', 'Anna'])
    for (const account of ['a', 'b', 'c'])
      await outbox.publishNow('accounts', opened(account, name), { key: account })

  expect(await outbox.drain()).toMatchObject({ acked: 9 })

  expect(await directory()).toEqual(['a', 'b', 'c'].map((account) => ({ account, name: 'Anna' })))
})

test('messages to many keys go by one statement', async () => {
  const outbox = createDirectory(db)

  await renameAll(db, outbox, { b: 'Bea', a: 'Ada' })
  await outbox.drain()

  expect(await directory()).toEqual([
    { account: 'a', name: 'Ada' },
    { account: 'b', name: 'Bea' },
  ])
})

test('a message that fails holds those of its key, and no others', async () => {
  const outbox = createOutbox({ database: db, queues, logger: false })
  const runs: string[] = []
  outbox.subscribe(
    'accounts',
    ({ key, body }) => {
      runs.push(`${key} ${body.kind}`)
      if (body.kind === 'opened' && key === 'a') throw new Error('not yet')
    },
    { retry: () => 60_000 },
  )
  for (const account of ['a', 'b']) {
    await outbox.publishNow('accounts', opened(account, 'Ann'), { key: account })
    await outbox.publishNow('accounts', renamed(account, 'Anna'), { key: account })
  }

  expect(await outbox.drain()).toMatchObject({ acked: 2, retried: 1 })

  expect(runs.toSorted()).toEqual(['a opened', 'b opened', 'b renamed'])
})

test('a message that is given up parks its key until somebody decides', async () => {
  const outbox = createOutbox({ database: db, queues, logger: false })
  const runs: string[] = []
  let isKnown = false
  outbox.subscribe(
    'accounts',
    ({ body }, context) => {
      runs.push(body.kind)
      if (!isKnown) context.reject('no such account')
    },
    { failingHead: 'park' },
  )
  await outbox.publishNow('accounts', opened('a', 'Ann'), { key: 'a' })
  await outbox.publishNow('accounts', renamed('a', 'Anna'), { key: 'a' })

  expect(await outbox.drain()).toMatchObject({ acked: 0, dead: 1 })
  expect((await outbox.keys.list({ queue: 'accounts' })).items).toMatchObject([
    { key: 'a', state: 'parked', head: { error: 'no such account' }, waiting: { count: 1 } },
  ])

  isKnown = true
  expect(await outbox.keys.resume('accounts', 'a', { by: 'Ops' })).toMatchObject({ resumed: true })
  expect(await outbox.drain()).toMatchObject({ acked: 2 })

  expect(runs).toEqual(['opened', 'opened', 'renamed'])
})

test('a message that is skipped is a dead letter, and the next of its key says after whom it comes', async () => {
  const outbox = createOutbox({ database: db, queues, logger: false })
  const after: (string | null)[] = []
  outbox.subscribe(
    'accounts',
    ({ body, afterDead }, context) => {
      if (body.kind === 'opened') context.reject('no such account')
      else after.push(afterDead)
    },
    { failingHead: 'skip' },
  )
  const { id } = await outbox.publishNow('accounts', opened('a', 'Ann'), { key: 'a' })
  await outbox.publishNow('accounts', renamed('a', 'Anna'), { key: 'a' })

  expect(await outbox.drain()).toMatchObject({ acked: 1, dead: 1 })

  expect(after).toEqual([id])
})

test('a message for later waits for nobody, and comes behind what was published meanwhile', async () => {
  const outbox = createOutbox({ database: db, queues, logger: false })
  const runs: (string | undefined)[] = []
  outbox.subscribe('accounts', ({ body }) => {
    runs.push(body.name)
  })
  await outbox.publishNow('accounts', renamed('a', 'later'), { key: 'a', delayMs: 3_600_000 })
  await outbox.publishNow('accounts', renamed('a', 'now'), { key: 'a' })

  await outbox.drain()
  await db.query(`update outbox set due_at = now()`) // its time has come
  await outbox.drain()

  expect(runs).toEqual(['now', 'later'])
})
