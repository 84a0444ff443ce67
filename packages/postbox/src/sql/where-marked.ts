// A setting that lasts until the transaction ends: in autocommit, until the end of the very statement that sets it.
export const setting = 'postbox.transaction'

/** The condition, for a parameter that holds the mark, or null where the handle itself has told. */
export function whereMarked(parameter: string): string {
  return `(${parameter}::text is null or current_setting('${setting}', true) = ${parameter}::text)`
}
