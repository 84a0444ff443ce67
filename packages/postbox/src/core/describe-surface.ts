import type { Described } from './describe-drift.ts'
import { relationWord } from './describe-drift.ts'
import {
  columnsText,
  type ExpectedRoutine,
  type ExpectedView,
  type FoundRoutine,
  type FoundView,
  routineText,
  type SurfaceDrift,
  sameColumns,
} from './schema-surface.ts'
import { unreachable } from './unreachable.ts'

/** A drift in words: what it is about, what it must be, what it is. */
export function describeSurface(drift: SurfaceDrift): Described {
  switch (drift.kind) {
    case 'function': {
      const { routine, found } = drift
      return {
        object: `function ${routine.name}${routine.argumentTypes}`,
        expected: `${routineText(routine, routine)}, not for public`,
        found: found === null ? 'missing' : foundRoutine(routine, found),
      }
    }
    case 'view':
      return {
        object: `view ${drift.view.name}`,
        expected: `a view of (${columnsText(drift.view.columns)})`,
        found: drift.found === null ? 'missing' : foundView(drift.view, drift.found),
      }
    case 'view_in_the_way':
      return {
        object: `view ${drift.view.name}`,
        expected: 'made again when the columns that it reads are mended',
        found: 'in their way',
      }
    default:
      return unreachable(drift)
  }
}

/** Bodies are long: whether it is ours is all that is said. */
function foundRoutine(expected: ExpectedRoutine, found: FoundRoutine): string {
  const body = found.body === expected.body ? '' : ', with another body'
  return `${routineText(found, expected)}${found.isPublic ? ', for public' : ''}${body}`
}

function foundView(expected: ExpectedView, found: FoundView): string {
  if (found.definition === null) return `another relation: ${relationWord(found.kind)}`
  if (!sameColumns(expected, found)) return `a view of (${columnsText(found.columns)})`
  return found.isInvoker ? 'with the rights of its reader' : 'with another definition'
}
