// Who gets the room when there is not enough for all keys.
import type pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import type { SettledKey } from '../../packages/postbox/src/sql/claim-in-order.ts'
import { spareLooks } from '../../packages/postbox/src/sql/first-rows.ts'
import { useDatabase } from '../support/database.ts'
import { useOrderClaims } from '../support/order-claims.ts'
import { openTransaction } from '../support/sessions.ts'

const database = useDatabase()
const { publish, claim, claimAll } = useOrderClaims(database)
let pool: pg.Pool

beforeAll(() => {
  pool = database.pool()
})

test('a key that has just been settled goes on when nobody has waited longer', async () => {
  await publish('busy', 'quiet')

  const { seqs, left } = await claim({ keys: [{ key: 'busy', after: '0' }] })

  expect({ seqs, left }).toEqual({ seqs: [1], left: null })
})

test('a key that has just been settled lets one go first that has waited longer, and is named as left', async () => {
  await publish('quiet', 'busy')

  const { seqs, left } = await claim({ keys: [{ key: 'busy', after: '0' }] })

  expect({ seqs, left }).toEqual({ seqs: [1], left: ['busy'] })
})

test('keys that were settled, and those that were not, get half of the room each', async () => {
  const busy = ['b1', 'b2', 'b3', 'b4']
  await publish(...busy, 'q1', 'q2', 'q3', 'q4')

  const { seqs, left } = await claim({ room: 4, after: '4', keys: busy.map((key) => ({ key, after: '0' })) })

  expect({ seqs, left }).toEqual({ seqs: [1, 2, 5, 6], left: ['b3', 'b4'] })
})

test('first rows that only a sweep can find get their share beside them', async () => {
  await publish('orphan', 'b1', 'b2', 'q1', 'q2')
  const keys = ['b1', 'b2'].map((key) => ({ key, after: '0' }))

  const { seqs } = await claim({ room: 3, after: '3', keys, keysFrom: '' })

  expect(seqs).toContain(1)
})

test('a row that is due and behind a settled one takes one place of the room', async () => {
  await publish('a', 'b', 'c')
  await database.query(`update outbox set attempts = 1, due_at = now() where key = 'a'`)

  const { seqs } = await claim({ room: 2, keys: [{ key: 'a', after: '0' }] })

  expect(seqs).toEqual([1, 2])
})

test('a row that a sweep finds, and another way as well, takes one place of the room', async () => {
  await publish('a', 'b', 'c')

  const { seqs } = await claim({ room: 2, keysFrom: '' })

  expect(seqs).toEqual([1, 2])
})

test('a settled key whose next row is due, and had no room, is named as left', async () => {
  await publish('a', 'b')
  await database.query(`update outbox set attempts = 1, due_at = now() - interval '1 minute' where key = 'b'`)
  await database.query(`update outbox set attempts = 1, due_at = now() where key = 'a'`)

  const { seqs, left } = await claim({ keys: [{ key: 'a', after: '0' }] })

  expect({ seqs, left }).toEqual({ seqs: [2], left: ['a'] })
})

test('a settled key that has nothing left, is held by somebody, or is to be tried later is not named as left', async () => {
  await publish('quiet', 'held', 'busy', 'later')
  await database.query(
    `update outbox set lease_token = gen_random_uuid(), leased_until = now() + interval '1 hour' where key = 'held'`,
  )
  await database.query(
    `update outbox set due_at = now() + interval '1 hour', attempts = 1 where key = 'later'`,
  )

  const { seqs, left } = await claim({
    keys: ['busy', 'held', 'later', 'none'].map((key) => ({ key, after: '0' })),
  })

  expect({ seqs, left }).toEqual({ seqs: [1], left: ['busy'] })
})

test('behind a message that has failed before nothing is taken with it', async () => {
  await publish('a', 'a', 'b', 'b')
  await database.query(`update outbox set attempts = 1, due_at = now() where seq = 1`)

  const { seqs } = await claim({ room: 10 })

  expect(seqs).toEqual([1, 3, 4])
})

describe('where there is more room than a claim looks for to spare', () => {
  const room = 4 * spareLooks
  const fill = (rows: number, key = 'null', queue = 'orders'): Promise<unknown> =>
    database.query(
      `insert into outbox (id, queue, key, body)
       select gen_random_uuid(), $2, ${key}, '1' from generate_series(1, $1::int) as n`,
      [rows, queue],
    )
  const busy = (keys: number): SettledKey[] =>
    Array.from({ length: keys }, (_, n) => ({ key: `b${n + 1}`, after: '0' }))

  test('keys that were settled, and those that were not, get half of it each, too', async () => {
    await fill(room, `'b' || n`)
    await fill(room, `'q' || n`)

    const { seqs } = await claim({ room, after: String(room), keys: busy(room) })

    expect([seqs.filter((seq) => seq <= room).length, seqs.length]).toEqual([room / 2, room])
  })

  test('settled keys of one queue take nothing from the fresh messages of another', async () => {
    await fill(room)
    await fill(room, `'b' || n`, 'mails')

    const { seqs } = await claimAll([{ room }, { queue: 'mails', room, after: '100000', keys: busy(room) }])

    expect(seqs.filter((seq) => seq <= room)).toHaveLength(room)
  })

  test('a claim beside settled keys says how far it has looked when others have locked all that it may offer', async () => {
    const offered = 2 - 1 + spareLooks
    await publish('b1')
    await fill(offered + 2)
    const user = await openTransaction(pool)
    await user.query(`select from outbox where seq <= ${1 + offered} for update`)

    const { seqs, queue } = await claim({ room: 2, after: '1', keys: busy(1) })

    const { reached, more, leftover } = queue ?? {}
    const toTheLastOffered = { reached: String(1 + offered), more: 'true', leftover: 'true' }
    expect({ seqs, reached, more, leftover }).toEqual({ seqs: [], ...toTheLastOffered })
  })
})
