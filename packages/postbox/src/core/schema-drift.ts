import {
  type Column,
  columnText,
  type ExpectedCheck,
  type ExpectedIndex,
  type ExpectedTable,
  type FoundCheck,
  type FoundColumn,
  type FoundIndex,
  type FoundTable,
  indexText,
  type StorageRule,
} from './schema-shape.ts'

/** One way in which a table is not what it must be. `found` null: it is missing. */
export type Drift = { readonly table: ExpectedTable } & (
  | { readonly kind: 'table'; readonly found: FoundTable | null }
  | { readonly kind: 'persistence' }
  | { readonly kind: 'column'; readonly column: Column; readonly found: FoundColumn | null }
  /** A column of somebody else's that no publish can fill. */
  | { readonly kind: 'required_column'; readonly found: FoundColumn }
  | { readonly kind: 'primary_key'; readonly found: FoundIndex | null }
  | { readonly kind: 'check'; readonly check: ExpectedCheck; readonly found: FoundCheck | null }
  | { readonly kind: 'index'; readonly index: ExpectedIndex; readonly found: FoundIndex | null }
  /** An index of somebody else's that can refuse what the outbox itself writes. */
  | { readonly kind: 'refusing_index'; readonly found: FoundIndex }
  | { readonly kind: 'storage'; readonly rule: StorageRule; readonly found: string | null }
)

/** Every drift, in the order in which it can be mended: tables as they are given, of each its columns before what is built on them. */
export function findDrift(
  expected: readonly ExpectedTable[],
  found: readonly FoundTable[],
): readonly Drift[] {
  return expected.flatMap((table) => {
    const there = found.find(({ relation }) => relation === table.relation) ?? null
    return there === null || !isTable(there)
      ? [{ table, kind: 'table', found: there }]
      : driftOf(table, there)
  })
}

/** Ordinary or partitioned. */
function isTable({ kind }: FoundTable): boolean {
  return kind === 'r' || kind === 'p'
}

function driftOf(table: ExpectedTable, found: FoundTable): readonly Drift[] {
  return [
    ...(found.isLogged ? [] : [{ table, kind: 'persistence' } as const]),
    ...columnDrift(table, found),
    ...primaryKeyDrift(table, found),
    ...checkDrift(table, found),
    ...indexDrift(table, found),
    ...storageDrift(table, found),
  ]
}

function columnDrift(table: ExpectedTable, { columns }: FoundTable): readonly Drift[] {
  const ours = table.columns.flatMap((column): Drift[] => {
    const found = columns.find(({ name }) => name === column.name) ?? null
    return found !== null && sameColumn(column, found) ? [] : [{ table, kind: 'column', column, found }]
  })
  const required = columns.filter((column) => isRequired(column) && !isNamed(table.columns, column.name))
  return [...ours, ...required.map((found) => ({ table, kind: 'required_column', found }) as const)]
}

function sameColumn(expected: Column, found: FoundColumn): boolean {
  // Text that nobody compares may have any collation.
  const collation = expected.collation === null ? null : found.collation
  return columnText(expected) === columnText({ ...found, collation })
}

function isRequired(column: FoundColumn): boolean {
  return column.refusesNull && column.default === null && column.identity === null && !column.generated
}

function primaryKeyDrift(table: ExpectedTable, { indexes }: FoundTable): readonly Drift[] {
  const { index, keys } = table.primaryKey
  const found = indexes.find(({ isPrimary }) => isPrimary)
  const wanted = indexText({ unique: true, keys, predicate: null })
  if (found !== undefined && indexText(found) === wanted) return []
  // Without a primary key something else may have its name.
  return [{ table, kind: 'primary_key', found: found ?? indexNamed(indexes, index) }]
}

/** By what they say, under any name: naming conventions differ. */
function checkDrift(table: ExpectedTable, { checks }: FoundTable): readonly Drift[] {
  return table.checks.flatMap((check): Drift[] => {
    const same = checks.filter(({ predicate }) => predicate === check.predicate)
    if (same.some(({ valid }) => valid)) return []
    const found = same[0] ?? checks.find(({ name }) => name === check.name) ?? null
    return [{ table, kind: 'check', check, found }]
  })
}

/** By what they are, under any name. */
function indexDrift(table: ExpectedTable, { indexes }: FoundTable): readonly Drift[] {
  const missing = table.indexes.filter((index) => !indexes.some((found) => sameIndex(index, found)))
  const wrong = missing.map((index): Drift & { kind: 'index' } => {
    return { table, kind: 'index', index, found: indexNamed(indexes, index.name) }
  })
  const replaced = wrong.map(({ found }) => found)
  const refusing = indexes.filter((found) => !replaced.includes(found) && canRefuse(table, found))
  return [...wrong, ...refusing.map((found) => ({ table, kind: 'refusing_index', found }) as const)]
}

function sameIndex(expected: ExpectedIndex, found: FoundIndex): boolean {
  return indexText(expected) === indexText(found)
}

/**
 * Whether a unique index of somebody else's can refuse a claim, a retry or a burial, or take a timer's name for good. One that can only
 * refuse a publish passes: it does so in the publisher's own transaction, and whoever made it wanted that.
 */
function canRefuse(table: ExpectedTable, found: FoundIndex): boolean {
  if (!found.unique || found.isPrimary || table.indexes.some((index) => sameIndex(index, found))) return false
  const isUniqueAnyway = table.primaryKey.keys.every((key) => found.keys.includes(key))
  const ours = found.reads.filter((column) => isNamed(table.columns, column))
  return !isUniqueAnyway && ours.some((column) => !table.onlyPublished.includes(column))
}

function storageDrift(table: ExpectedTable, { storage }: FoundTable): readonly Drift[] {
  return table.storage.flatMap((rule): Drift[] => {
    const found = storage[rule.name] ?? null
    return keepsRule(rule, found) ? [] : [{ table, kind: 'storage', rule, found }]
  })
}

function keepsRule({ kind, value }: StorageRule, found: string | null): boolean {
  if (kind === 'not_off') return found !== 'off'
  if (found === null) return false
  // 0 and 0.0 are the same.
  return kind === 'set' || (typeof value === 'number' ? Number(found) === value : found === value)
}

function indexNamed(indexes: readonly FoundIndex[], wanted: string): FoundIndex | null {
  return indexes.find(({ name }) => name === wanted) ?? null
}

function isNamed(columns: readonly Column[], wanted: string): boolean {
  return columns.some(({ name }) => name === wanted)
}
