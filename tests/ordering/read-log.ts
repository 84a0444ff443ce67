// The log of the database as `test_decoding` prints it: what committed, in the order of commits, seen without taking part.
import type { Moment } from './history.ts'

/** A row that was inserted, updated or deleted. Of a deleted one only the primary key is told. */
export interface Change {
  readonly table: string
  readonly kind: 'INSERT' | 'UPDATE' | 'DELETE'
  readonly row: Row
  /** The primary key that it had, when that was changed. */
  readonly before: Row | null
}

/** Columns as text. */
export type Row = Readonly<Record<string, string | null>>

export interface Transaction {
  readonly at: Moment
  readonly changes: readonly Change[]
}

// table shop.outbox: INSERT: seq[bigint]:1 key[text]:'it''s' due_at[timestamp with time zone]:null
// table shop.outbox: UPDATE: old-key: seq[bigint]:1 new-tuple: seq[bigint]:2 …
const changeLine = /^table (\S+): (INSERT|UPDATE|DELETE): (?:old-key: (.*?) new-tuple: )?(.*)$/s
const column = /"?(\w+)"?\[[^\]]+\]:(?:'((?:[^']|'')*)'|(\S+))/gs
const commitLine = /^COMMIT \d+ \(at (.+)\)$/

/** Takes the lines in the portions in which they are read; a transaction is never cut in two by them. */
export function createLogReader(): { read(lines: readonly string[]): readonly Transaction[] } {
  let place = 0
  return {
    read(lines) {
      const transactions: Transaction[] = []
      let changes: Change[] = []
      for (const line of lines) {
        const end = commitLine.exec(line)?.[1]
        if (end !== undefined) {
          transactions.push({ at: { place: ++place, ms: millisecondsOf(end) }, changes })
          changes = []
        } else if (!line.startsWith('BEGIN')) changes.push(readChange(line))
      }
      return transactions
    },
  }
}

function readChange(line: string): Change {
  const [, table = '', kind, before, columns = ''] = changeLine.exec(line) ?? []
  if (kind === undefined) throw new Error(`expected a change, got: ${line.slice(0, 200)}`)
  const row = readRow(columns)
  return { table, kind: kind as Change['kind'], row, before: before === undefined ? null : readRow(before) }
}

function readRow(columns: string): Row {
  const entries = [...columns.matchAll(column)].map(([, name, quoted, plain]) => [
    name,
    textOf(quoted, plain),
  ])
  return Object.fromEntries(entries)
}

function textOf(quoted: string | undefined, plain: string | undefined): string | null {
  if (quoted !== undefined) return quoted.replaceAll("''", "'")
  return plain === 'null' || plain === undefined ? null : plain
}

/** `2026-01-31 12:00:00.123456+00`: the microseconds are kept, as a fraction. */
export function millisecondsOf(text: string): number {
  const [, seconds, micros = ''] = /^(\S+ [\d:]{8})(?:\.(\d+))?\+00$/.exec(text) ?? []
  if (seconds === undefined) throw new Error(`expected a time in UTC, got: ${text}`)
  return Date.parse(`${seconds.replace(' ', 'T')}Z`) + Number(micros.padEnd(6, '0')) / 1_000
}
