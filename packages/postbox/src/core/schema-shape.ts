import type { FoundRoutine, FoundView } from './schema-surface.ts'

// What a table is, in the words of Postgres' own catalogue: types by format_type, predicates and defaults by pg_get_expr. Names are quoted
// and complete (`"schema"."table"`), those of columns and constraints without their table.

export interface Column {
  readonly name: string
  readonly type: string
  /** null: the type's own, or whichever. */
  readonly collation: string | null
  readonly notNull: boolean
  readonly default: string | null
  readonly identity: Identity | null
}

export interface Identity {
  /** False: `by default`, which lets a writer choose. */
  readonly always: boolean
  /** Claims ask it by its name for the last number that was given out. */
  readonly sequence: string
  /** The same without its schema, as `rename to` wants it. */
  readonly sequenceName: string
  readonly parameters: readonly string[]
  /** False: a sequence that forgets after a crash, though its table does not. */
  readonly isLogged: boolean
}

export interface Index {
  readonly name: string
  readonly unique: boolean
  readonly keys: readonly string[]
  readonly predicate: string | null
}

export interface PrimaryKey {
  /** Of the constraint; its index has the same. */
  readonly name: string
  readonly index: string
  readonly keys: readonly string[]
}

export interface Check {
  readonly name: string
  readonly predicate: string
}

/** equal: to this value. set: to any; this one mends it. not_off: absent will do. */
export interface StorageRule {
  readonly kind: 'equal' | 'set' | 'not_off'
  readonly name: string
  readonly value: number | string
}

export interface ExpectedTable {
  readonly name: string
  /** As the catalogue has it: without schema, unquoted. */
  readonly relation: string
  readonly columns: readonly Column[]
  readonly primaryKey: PrimaryKey
  readonly indexes: readonly ExpectedIndex[]
  readonly checks: readonly ExpectedCheck[]
  readonly storage: readonly StorageRule[]
  /** The columns that a publish writes and nobody after it. A unique index of somebody else's on these can refuse a publish, and nothing else. */
  readonly onlyPublished: readonly string[]
  /** Its rows say which steps were applied: they can be written anew, and no other table's can. */
  readonly holdsSteps: boolean
  /** Makes it and all that belongs to it. */
  readonly create: readonly string[]
}

export interface ExpectedIndex extends Index {
  readonly create: string
}

export interface ExpectedCheck extends Check {
  /** As it is written in SQL. */
  readonly condition: string
  /** Makes the rows pass. */
  readonly prepare: string
}

export interface FoundColumn extends Column {
  /** Its name, quoted. */
  readonly quoted: string
  readonly generated: boolean
  /** New rows must have it, whether the old ones were checked or not. */
  readonly refusesNull: boolean
}

export interface FoundIndex extends Index {
  readonly isPrimary: boolean
  /** The constraint that it serves. */
  readonly constraint: string | null
  /** The columns of its keys, its expressions and its predicate. */
  readonly reads: readonly string[]
  /** What an index of ours never is: of another method, with more columns, deferrable, invalid. */
  readonly oddities: string
}

export interface FoundCheck extends Check {
  readonly valid: boolean
}

export interface FoundTable {
  readonly relation: string
  /** pg_class.relkind: r is a table. */
  readonly kind: string
  readonly isLogged: boolean
  readonly columns: readonly FoundColumn[]
  readonly indexes: readonly FoundIndex[]
  readonly checks: readonly FoundCheck[]
  readonly storage: Readonly<Record<string, string>>
}

/** What is there, and the last step that was applied; null: nobody can tell. */
export interface Catalogue {
  readonly tables: readonly FoundTable[]
  /** Whatever has the name of the view. */
  readonly view: FoundView | null
  /** Whatever has the name of the function: there may be several, with other arguments. */
  readonly routines: readonly FoundRoutine[]
  readonly version: number | null
}

export function columnText(column: Column & { readonly generated?: boolean }): string {
  const { type, collation, notNull, default: value, identity, generated = false } = column
  const parts = [
    type,
    collation === null ? '' : `collate "${collation}"`,
    notNull ? 'not null' : '',
    value === null ? '' : `default ${value}`,
    identity === null ? '' : identityText(identity),
    generated ? 'generated' : '',
  ]
  return parts.filter((part) => part !== '').join(' ')
}

function identityText({ always, sequence, parameters, isLogged }: Identity): string {
  const kind = `generated ${always ? 'always' : 'by default'} as identity`
  return `${kind} (${isLogged ? '' : 'unlogged '}sequence name ${sequence} ${parameters.join(' ')})`
}

export function indexText(index: Omit<Index, 'name'> & { readonly oddities?: string }): string {
  const { unique, keys, predicate, oddities = '' } = index
  const parts = [
    unique ? 'unique' : '',
    `(${keys.join(', ')})`,
    predicate === null ? '' : `where ${predicate}`,
    oddities,
  ]
  return parts.filter((part) => part !== '').join(' ')
}
