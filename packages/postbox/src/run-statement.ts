import type { Executor } from './adapters/executor.ts'
import type { Names } from './sql/names.ts'
import type { Statement } from './sql/statement.ts'

/** Only the database can fail here: the input was checked. Tables that were never made are the commonest reason. */
export async function runStatement<Row>(
  { names }: { readonly names: Names },
  executor: Executor,
  statement: Statement<Row>,
): Promise<readonly Row[]> {
  try {
    return await executor.run(statement)
  } catch (error) {
    // What it means is loaded when something failed; where that fails, too, the error itself must not be lost.
    const meaning = await import('./sql/schema-missing.ts').catch(() => null)
    throw meaning === null ? error : meaning.orSchemaMissing(error, names.messages)
  }
}
