import type { NoRow, Statement } from './statement.ts'

export const readIsolation: Statement<{ readonly isolation: string }> = {
  name: 'read_isolation',
  text: `select current_setting('default_transaction_isolation') as isolation`,
  values: [],
}

export const setReadCommitted = plain('set transaction isolation level read committed')
export const beginReadCommitted = plain('begin isolation level read committed')
export const commit = plain('commit')
export const rollback = plain('rollback')

function plain(text: string): Statement<NoRow> {
  return { name: text, text, values: [] }
}
