import { assertOptions, type Check, type Shape } from './validate.ts'

export interface ValidateSchemaOptions {
  /** Whether vacuum has to come to the messages by number of rows. False for what `schemaSql({ autovacuum: false })` made. @default true */
  readonly autovacuum?: boolean
}

const shape = {
  autovacuum: (value) => (typeof value === 'boolean' ? null : 'to be true or false'),
} satisfies Shape & Record<keyof ValidateSchemaOptions, Check>

export function resolveValidateSchemaOptions(
  given: ValidateSchemaOptions | undefined,
): Required<ValidateSchemaOptions> {
  assertOptions(given, shape, 'the options of validateSchema')
  return { autovacuum: given?.autovacuum ?? true }
}
