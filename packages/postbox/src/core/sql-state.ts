import { isPrismaError, type Layer, layersOf, member } from './error-layers.ts'

/** The SQLSTATEs we decide by, by name. */
export const sqlState = {
  failedTransaction: '25P02',
  readOnlyTransaction: '25006',
  queryCanceled: '57014',
  uniqueViolation: '23505',
  undefinedTable: '42P01',
  insufficientPrivilege: '42501',
  lockNotAvailable: '55P03',
  deadlockDetected: '40P01',
} as const

/** The five characters that Postgres gave an error, found through whatever a client wrapped around it. Never throws. */
export function sqlStateOf(error: unknown): string | null {
  return layersOf(error).flatMap(codesOf).find(isState) ?? null
}

/** `code` in most clients, `errno` in Bun's (elsewhere a number), `originalCode` in Prisma's adapters. */
function codesOf(layer: Layer): readonly unknown[] {
  // Prisma's own codes look like states: P2002.
  const code = isPrismaError(layer) ? null : member(layer, 'code')
  return [code, member(layer, 'errno'), member(layer, 'originalCode')]
}

// Capitals and digits, and at least one digit: EPIPE is none. E2BIG is the one name of the operating system that has a digit, too.
function isState(code: unknown): code is string {
  return typeof code === 'string' && /^(?=.*[0-9])(?!E2BIG)[0-9A-Z]{5}$/.test(code)
}
