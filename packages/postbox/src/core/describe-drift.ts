import type { Drift } from './schema-drift.ts'
import type { SchemaDifference } from './schema-drift-error.ts'
import { columnText, type FoundIndex, indexText, type StorageRule } from './schema-shape.ts'
import { unreachable } from './unreachable.ts'

export type Described = Omit<SchemaDifference, 'sql'>

const missing = 'missing'

/** A drift in words: what it is about, what it must be, what it is. */
export function describeDrift(drift: Drift): Described {
  const { table } = drift
  switch (drift.kind) {
    case 'table':
      return described(`table ${table.name}`, 'a table', drift.found && relationText(drift.found.kind))
    case 'persistence':
      return described(`table ${table.name}`, 'logged', 'unlogged: a crash empties it')
    case 'column': {
      const found = drift.found && columnText(drift.found)
      return described(`column ${table.name}.${drift.column.name}`, columnText(drift.column), found)
    }
    case 'required_column': {
      const { quoted, type } = drift.found
      const found = `${type} not null, which no insert of the outbox fills`
      return described(`column ${table.name}.${quoted}`, 'null allowed, or a default', found)
    }
    case 'primary_key': {
      const { name, keys } = table.primaryKey
      const object = `primary key ${name} on ${table.name}`
      return described(object, `(${keys.join(', ')})`, drift.found && keyText(drift.found))
    }
    case 'check': {
      const { check, found } = drift
      const text = found && `${found.predicate}${found.valid ? '' : ' not valid'}`
      return described(`constraint ${check.name} on ${table.name}`, check.predicate, text)
    }
    case 'index':
      return described(
        `index ${drift.index.name}`,
        indexText(drift.index),
        drift.found && indexText(drift.found),
      )
    case 'refusing_index': {
      const { name } = drift.found
      return described(`index ${name}`, 'none that can refuse what the outbox writes', indexText(drift.found))
    }
    case 'storage':
      return described(
        `storage parameter ${drift.rule.name} of ${table.name}`,
        ruleText(drift.rule),
        drift.found,
      )
    default:
      return unreachable(drift)
  }
}

function described(object: string, expected: string, found: string | null): Described {
  return { object, expected, found: found ?? missing }
}

/** What has the name of something else: the word that drops it, too. */
export function relationWord(kind: string): string {
  return relationWords[kind] ?? 'relation'
}

const relationWords: Readonly<Record<string, string>> = {
  r: 'table',
  p: 'table',
  v: 'view',
  m: 'materialized view',
  f: 'foreign table',
  S: 'sequence',
  i: 'index',
  c: 'type',
}

function relationText(kind: string): string {
  return `another relation: ${relationWord(kind)}`
}

function keyText(found: FoundIndex): string {
  return found.isPrimary ? indexText({ ...found, unique: false }) : `${indexText(found)}, not a primary key`
}

function ruleText({ kind, value }: StorageRule): string {
  switch (kind) {
    case 'equal':
      return String(value)
    case 'set':
      return 'any value'
    case 'not_off':
      return 'not off'
    default:
      return unreachable(kind)
  }
}
