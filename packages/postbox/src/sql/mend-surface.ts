import { relationWord } from '../core/describe-drift.ts'
import {
  type FoundRoutine,
  type FoundView,
  type Grant,
  type SurfaceDrift,
  sameColumns,
  sameDefinition,
} from '../core/schema-surface.ts'
import { unreachable } from '../core/unreachable.ts'
import type { Names } from './names.ts'
import { createReplayFunction, revokeReplayFunction } from './replay-function.ts'
import { createStatusView, type ViewedTables } from './status-view.ts'

/** The statements that mend one drift. Who was granted something keeps it; what is not ours is put aside, if it has rows. */
export function mendSurface(names: Names, drift: SurfaceDrift, tables: ViewedTables): readonly string[] {
  switch (drift.kind) {
    case 'function':
      return mendFunction(names, drift)
    case 'view':
      return mendView(names, drift, tables)
    case 'view_in_the_way':
      return [
        dropStatusView(names),
        createStatusView(names, tables),
        ...grantAgain(names.status, drift.found.grants),
      ]
    default:
      return unreachable(drift)
  }
}

/** It may be gone already: what is mended one by one drops it each time. */
export function dropStatusView(names: Names): string {
  return `drop view if exists ${names.status}`
}

function mendFunction(names: Names, drift: SurfaceDrift & { kind: 'function' }): readonly string[] {
  const { routine, found } = drift
  const revoke = revokeReplayFunction(names)
  if (found === null) return [createReplayFunction(names, { replace: false }), revoke]
  const isReplaceable = (['argumentTypes', 'arguments', 'result'] as const).every(
    (part) => found[part] === routine[part],
  )
  if (isReplaceable) return [createReplayFunction(names, { replace: true }), revoke]
  return [
    `drop routine ${routine.name}${found.argumentTypes}`,
    createReplayFunction(names, { replace: false }),
    revoke,
    ...grantAgain(`function ${routine.name}${routine.argumentTypes}`, found.grants),
  ]
}

function mendView(
  names: Names,
  { view, found }: SurfaceDrift & { kind: 'view' },
  tables: ViewedTables,
): readonly string[] {
  const create = createStatusView(names, tables)
  if (found === null) return [create]
  if (found.definition === null) return [...makeWay(names, found), create]
  if (!sameColumns(view, found)) {
    return [dropStatusView(names), create, ...grantAgain(view.name, found.grants)]
  }
  return [
    ...(found.isInvoker ? [`alter view ${view.name} reset (security_invoker)`] : []),
    ...(sameDefinition(view, found) ? [] : [create.replace('create view', 'create or replace view')]),
  ]
}

/** A view of another kind can be made again. Of anything else nobody knows what is in it. */
function makeWay(names: Names, { kind }: FoundView): readonly string[] {
  if (kind === 'm') return [`drop materialized view ${names.status}`]
  const aside = `"${names.plain.status.replaceAll('"', '""')}_aside"`
  return [`alter ${relationWord(kind)} ${names.status} rename to ${aside}`]
}

function grantAgain(object: string, grants: FoundRoutine['grants']): readonly string[] {
  return grants.map(({ privilege, grantee }: Grant) => `grant ${privilege} on ${object} to ${grantee}`)
}
