import { expect, test } from 'vitest'
import {
  cancelTransaction,
  doomTransaction,
  readTransactionStatus,
  restorePatience,
} from './fence-transaction.ts'

test('a transaction is asked after by its number, as text', () => {
  expect(readTransactionStatus('7')).toMatchObject({ values: ['7'], input: { xid: '7' } })
})

test('only the statement of that very transaction is cancelled: its process may be serving another by now', () => {
  const { text, values } = cancelTransaction({ xid: '7', pid: '42' })

  expect(values).toEqual(['42', '7'])
  expect(text).toMatch(/a\.pid = \$1::text::int\s+and a\.backend_xid = \$2::text::xid8::xid/)
})

test('a transaction that is doomed fails as if its statement had been cancelled', () => {
  expect(doomTransaction.text).toContain(`using errcode = 'query_canceled'`)
  expect(doomTransaction.values).toEqual([])
})

test('the patience of a transaction is put back for as long as it lasts', () => {
  const { text, values } = restorePatience('7s')

  expect(values).toEqual(['7s'])
  expect(text).toBe(`select set_config('lock_timeout', $1::text, true) as patience`)
})
