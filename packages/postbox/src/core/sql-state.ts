/** The SQLSTATEs we decide by, by name. */
export const sqlState = {
  failedTransaction: '25P02',
  readOnlyTransaction: '25006',
  queryCanceled: '57014',
  undefinedTable: '42P01',
} as const

const deepest = 10

/** The five characters that Postgres gave an error, found through whatever a client wrapped around it. */
export function sqlStateOf(error: unknown): string | null {
  for (
    let current = error, depth = 0;
    isObject(current) && depth < deepest;
    current = current['cause'], depth++
  ) {
    const code = current['code']
    if (typeof code === 'string' && /^(?=.*[0-9])[0-9A-Z]{5}$/.test(code)) return code
  }
  return null
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
