import { expect, test } from 'vitest'
import type { Database } from '../adapters/executor.ts'
import type { Statement } from '../sql/statement.ts'
import { purgeAll } from './purge.ts'

/** A database that purges so many rows at each batch. */
function purging(counts: readonly number[], column = 'purged') {
  const sent: string[] = []
  const left = [...counts]
  const run = async <Row>({ name, values }: Statement<Row>): Promise<readonly Row[]> => {
    sent.push([name, ...values].join(' '))
    return (name === 'purge' ? [{ [column]: String(left.shift()) }] : []) as unknown as readonly Row[]
  }
  const database: Database = {
    run,
    transaction: (work) => work({ run }, null),
    singleSession: false,
    capacity: null,
  }
  return { database, sent }
}

const batch = (limit: number): Statement<{ readonly purged: string }> => ({
  name: 'purge',
  text: '',
  values: [limit],
})
const readCommitted = 'set transaction isolation level read committed'

test('batches are deleted until one is not full, each in a transaction of its own', async () => {
  const { database, sent } = purging([5_000, 5_000, 3, 5_000])

  expect(await purgeAll(database, batch, { signal: undefined })).toEqual({ purged: 10_003 })
  expect(sent).toEqual(Array.from({ length: 3 }, () => [readCommitted, 'purge 5000']).flat())
})

test('a signal that aborts ends it after the batch under way, and what was purged is told', async () => {
  const abort = new AbortController()
  const { database, sent } = purging([5_000, 5_000])
  const aborting = (limit: number) => {
    if (sent.length > 0) abort.abort()
    return batch(limit)
  }

  expect(await purgeAll(database, aborting, { signal: abort.signal })).toEqual({ purged: 10_000 })
  expect(await purgeAll(database, batch, { signal: abort.signal })).toEqual({ purged: 0 })
})

test('an answer with other columns is neither taken for none nor asked for again and again', async () => {
  const { database, sent } = purging([5_000], 'Purged')

  await expect(purgeAll(database, batch, { signal: undefined })).rejects.toMatchObject({
    code: 'OUTBOX_UNKNOWN_HANDLE',
  })
  expect(sent).toHaveLength(2)
})
