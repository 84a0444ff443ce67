import { normalDefinition } from './view-definition.ts'

// What people with a SQL client use: a view and a function. In the words of Postgres' catalogue, as in schema-shape.ts.

export interface ViewColumn {
  readonly name: string
  readonly type: string
}

export interface ExpectedView {
  readonly name: string
  /** As the catalogue has it: without schema, unquoted. */
  readonly relation: string
  readonly columns: readonly ViewColumn[]
  /** The tables whose columns cannot be altered while it is there. */
  readonly reads: readonly string[]
  readonly definition: string
}

export interface FoundView {
  /** pg_class.relkind: v is a view. */
  readonly kind: string
  readonly columns: readonly ViewColumn[]
  /** null: it is no view. */
  readonly definition: string | null
  /** It asks for its reader's rights to the tables, not for its owner's. */
  readonly isInvoker: boolean
  readonly grants: readonly Grant[]
}

export interface ExpectedRoutine {
  readonly name: string
  /** In brackets: with the name, what tells it from others. */
  readonly argumentTypes: string
  readonly arguments: string
  readonly result: string
  /** Language, volatility, parallel safety, what it does on null, whose rights it has. */
  readonly traits: readonly string[]
  readonly settings: readonly string[]
  readonly body: string
}

export interface FoundRoutine extends Omit<ExpectedRoutine, 'name' | 'result'> {
  /** null: it is a procedure, say. */
  readonly result: string | null
  readonly isPublic: boolean
  readonly grants: readonly Grant[]
}

/** What somebody other than the owner may do. */
export interface Grant {
  /** Quoted. */
  readonly grantee: string
  readonly privilege: string
}

export type SurfaceDrift =
  | { readonly kind: 'function'; readonly routine: ExpectedRoutine; readonly found: FoundRoutine | null }
  | { readonly kind: 'view'; readonly view: ExpectedView; readonly found: FoundView | null }
  /** Whatever it is, what it reads cannot be mended while it is there. */
  | { readonly kind: 'view_in_the_way'; readonly view: ExpectedView; readonly found: FoundView }

/** What has its arguments is meant, else anything that has its name: that would answer in its place. */
export function findRoutineDrift(
  routine: ExpectedRoutine,
  found: readonly FoundRoutine[],
): readonly SurfaceDrift[] {
  const same = found.find(({ argumentTypes }) => argumentTypes === routine.argumentTypes)
  const there = same ?? found[0] ?? null
  return there !== null && isRoutine(routine, there) ? [] : [{ kind: 'function', routine, found: there }]
}

function isRoutine(expected: ExpectedRoutine, found: FoundRoutine): boolean {
  return (
    !found.isPublic &&
    found.body === expected.body &&
    routineText(found, expected) === routineText(expected, expected)
  )
}

export function findViewDrift(
  view: ExpectedView,
  found: FoundView | null,
  { isInTheWay }: { readonly isInTheWay: boolean },
): readonly SurfaceDrift[] {
  if (found !== null && isInTheWay) return [{ kind: 'view_in_the_way', view, found }]
  return found !== null && isView(view, found) ? [] : [{ kind: 'view', view, found }]
}

function isView(expected: ExpectedView, found: FoundView): boolean {
  return !found.isInvoker && sameColumns(expected, found) && sameDefinition(expected, found)
}

export function sameColumns(expected: ExpectedView, found: FoundView): boolean {
  return columnsText(expected.columns) === columnsText(found.columns)
}

export function sameDefinition(expected: ExpectedView, { definition }: FoundView): boolean {
  return definition !== null && normalDefinition(definition) === normalDefinition(expected.definition)
}

export function columnsText(columns: readonly ViewColumn[]): string {
  return columns.map(({ name, type }) => `${name} ${type}`).join(', ')
}

/** Settings of somebody's own (a timeout, say) are fine. */
export function routineText(
  routine: ExpectedRoutine | FoundRoutine,
  { settings: ours }: ExpectedRoutine,
): string {
  const { arguments: given, result, traits, settings } = routine
  const set = settings.filter((setting) => ours.some((one) => nameOf(one) === nameOf(setting)))
  return `(${given}) returns ${result ?? 'nothing'} ${[...traits, ...set.toSorted()].join(', ')}`
}

function nameOf(setting: string): string {
  return setting.slice(0, setting.indexOf('='))
}
