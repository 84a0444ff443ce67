import { relationWord } from '../core/describe-drift.ts'
import type { Drift } from '../core/schema-drift.ts'
import type { Column, ExpectedTable, FoundColumn, FoundIndex, Identity } from '../core/schema-shape.ts'
import { unreachable } from '../core/unreachable.ts'
import { literal } from './names.ts'

/**
 * The statements that mend one drift. They keep every row, and make no data up: where the values of a column are gone, putting it back is
 * refused by Postgres (23502) as long as there are rows.
 */
export function mendDrift(drift: Drift): readonly string[] {
  const { table } = drift
  const alter = `alter table ${table.name}`
  switch (drift.kind) {
    case 'table':
      return [
        ...(drift.found === null ? [] : [`drop ${relationWord(drift.found.kind)} ${table.name}`]),
        ...table.create,
      ]
    case 'persistence':
      return [`${alter} set logged`]
    case 'column':
      return drift.found === null
        ? addColumn(table, drift.column)
        : alterColumn(table, drift.column, drift.found)
    case 'required_column':
      return [`${alter} alter column ${drift.found.quoted} drop not null`]
    case 'primary_key': {
      const { name, keys } = table.primaryKey
      const add = `${alter} add constraint ${name} primary key (${keys.join(', ')})`
      return [...dropIndex(table, drift.found), add]
    }
    case 'check': {
      const { check, found } = drift
      const drop = found === null ? [] : [`${alter} drop constraint ${found.name}`]
      return [check.prepare, ...drop, `${alter} add constraint ${check.name} check (${check.condition})`]
    }
    case 'index':
      return [...dropIndex(table, drift.found), drift.index.create]
    case 'refusing_index':
      return dropIndex(table, drift.found)
    case 'storage': {
      const { kind, name, value } = drift.rule
      return [kind === 'not_off' ? `${alter} reset (${name})` : `${alter} set (${name} = ${value})`]
    }
    default:
      return unreachable(drift)
  }
}

function dropIndex(table: ExpectedTable, found: FoundIndex | null): readonly string[] {
  if (found === null) return []
  const { constraint, name } = found
  return [
    constraint === null ? `drop index ${name}` : `alter table ${table.name} drop constraint ${constraint}`,
  ]
}

function addColumn(table: ExpectedTable, column: Column): readonly string[] {
  const { name, notNull, default: value, identity } = column
  const isLost = notNull && value === null && identity === null
  // Which steps were applied is known: their rows are written anew.
  const empty = isLost && table.holdsSteps ? [`delete from ${table.name}`] : []
  const rest = `${notNull ? ' not null' : ''}${value === null ? '' : ` default ${value}`}`
  const numbers = identity === null ? '' : ` ${asIdentity(identity)}`
  const add = `alter table ${table.name} add column ${name} ${typeText(column)}${rest}${numbers}`
  return [...empty, ...(identity === null ? [] : [makeWayFor(identity)]), add]
}

/** Only what differs, in an order in which each statement finds what it needs. */
function alterColumn(table: ExpectedTable, column: Column, found: FoundColumn): readonly string[] {
  const { name, type, notNull, default: value, identity } = column
  const alter = `alter table ${table.name} alter column ${name}`
  const isOther = isRetyped(column, found)
  const losesDefault = found.default !== null && (isOther || value === null)
  const getsDefault = value !== null && (isOther || value !== found.default)
  const isFilled = notNull && !found.notNull && value !== null
  return [
    ...(found.generated ? [`${alter} drop expression`] : []),
    ...(identity === null && found.identity !== null ? [`${alter} drop identity`] : []),
    // Before the type: the old default need not have a value of the new one.
    ...(losesDefault ? [`${alter} drop default`] : []),
    ...(isOther ? [`${alter} type ${typeText(column)} using ${name}::${type}`] : []),
    ...(getsDefault ? [`${alter} set default ${value}`] : []),
    ...(isFilled ? [`update ${table.name} set ${name} = default where ${name} is null`] : []),
    ...(notNull === found.notNull ? [] : [`${alter} ${notNull ? 'set' : 'drop'} not null`]),
    ...(identity === null ? [] : alterIdentity({ table, name, identity }, found.identity)),
  ]
}

/** Text that nobody compares may have any collation. */
export function isRetyped({ type, collation }: Column, found: FoundColumn): boolean {
  return type !== found.type || (collation !== null && collation !== found.collation)
}

interface NumberedColumn {
  readonly table: ExpectedTable
  readonly name: string
  readonly identity: Identity
}

function alterIdentity(column: NumberedColumn, found: Identity | null): readonly string[] {
  const { table, name, identity } = column
  const alter = `alter table ${table.name} alter column ${name}`
  if (found === null) return [makeWayFor(identity), `${alter} add ${asIdentity(identity)}`, goOnAbove(column)]
  const rename = `alter sequence ${found.sequence} rename to ${identity.sequenceName}`
  const isChanged = found.parameters.join() !== identity.parameters.join()
  const set = identity.parameters.map((parameter) => `set ${parameter}`).join(' ')
  return [
    ...(found.always ? [] : [`${alter} set generated always`]),
    ...(isChanged ? [`${alter} ${set}`, goOnAbove(column)] : []),
    ...(found.isLogged ? [] : [`alter sequence ${found.sequence} set logged`]),
    ...(found.sequence === identity.sequence ? [] : [makeWayFor(identity), rename]),
  ]
}

/** A sequence that a default has drawn from, or nobody, may have the name. */
function makeWayFor({ sequence }: Identity): string {
  return `drop sequence if exists ${sequence}`
}

/**
 * The next number is above every row's: a publish would fail on a primary key that is taken. A sequence that is above is left alone, because
 * publishers may be drawing from it.
 */
function goOnAbove({ table, name }: NumberedColumn): string {
  const sequence = `pg_get_serial_sequence(${literal(table.name)}, '${name}')::regclass`
  const isBehind = `max(${name}) > coalesce(pg_sequence_last_value(${sequence}), 0)`
  return `select setval(${sequence}, max(${name})) from ${table.name} having ${isBehind}`
}

function asIdentity({ sequence }: Identity): string {
  return `generated always as identity (sequence name ${sequence})`
}

function typeText({ type, collation }: Column): string {
  return collation === null ? type : `${type} collate "${collation}"`
}
