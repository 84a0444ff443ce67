import { assertOptions, type Check, isRecord, type Shape, wholeNumber } from './validate.ts'

export interface SchemaSqlOptions {
  /** When vacuum comes to the messages, or false: as the server is set. */
  readonly autovacuum?: Autovacuum | false
}

/** Thresholds in rows, cost delay in milliseconds. Every message dies young: vacuum by number of rows, and without pauses. */
export interface Autovacuum {
  /** @default 1_000 */
  readonly threshold?: number
  /** @default 1_000 */
  readonly insertThreshold?: number
  /** @default 0 */
  readonly costDelay?: number
  /** @default the server's */
  readonly costLimit?: number
}

const autovacuumShape = {
  threshold: wholeNumber(0, 2_147_483_647),
  insertThreshold: wholeNumber(0, 2_147_483_647),
  costDelay: wholeNumber(0, 100),
  costLimit: wholeNumber(1, 10_000),
} satisfies Shape & Record<keyof Autovacuum, Check>

const shape: Shape = {
  autovacuum: (value) => (value === false || isRecord(value) ? null : 'to be an object or false'),
}

/** These numbers become part of a statement's text: nothing else may. */
export function resolveSchemaSqlOptions(given: SchemaSqlOptions | undefined): Required<SchemaSqlOptions> {
  assertOptions(given, shape, 'the options of schemaSql')
  const autovacuum = given?.autovacuum ?? {}
  if (autovacuum !== false) assertOptions(autovacuum, autovacuumShape, '`autovacuum`')
  return { autovacuum }
}
