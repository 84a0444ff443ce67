// What one statement reads, as counts: which index, how many rows, how many pages.
import type pg from 'pg'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'

interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Shared Hit Blocks': number
  readonly 'Shared Read Blocks': number
  readonly Plans?: readonly PlanNode[]
}

export interface StatementReading {
  /** How each table or index was read. */
  readonly scans: readonly string[]
  /** Rows that were looked at, those that were passed over included. */
  readonly rows: number
  /** Pages that were read, of tables and indexes. */
  readonly pages: number
}

/** Runs it, and tells how. */
export async function readStatement(
  pool: Pick<pg.Pool, 'query'> | pg.PoolClient,
  { text, values }: Statement<unknown>,
): Promise<StatementReading> {
  const { rows } = await pool.query(`${explaining} ${text}`, [...values])
  return readingOf(rows[0]['QUERY PLAN'][0].Plan)
}

/** The same of what this connection keeps of it. */
export async function readExecuted(
  client: pg.PoolClient,
  { keptText, values }: Statement<unknown>,
): Promise<StatementReading> {
  const kept = await client.query('select name from pg_prepared_statements where statement = $1', [keptText])
  const given = values.map((value) => client.escapeLiteral(String(value))).join(', ')
  const { rows } = await client.query(`${explaining} execute "${kept.rows[0].name}" (${given})`)
  return readingOf(rows[0]['QUERY PLAN'][0].Plan)
}

const explaining = 'explain (analyze, timing off, buffers, format json)'

function readingOf(plan: PlanNode): StatementReading {
  // Of a bitmap, the part that fetches rows; of a write, not the table that is written.
  const scans = below(plan).filter((node) => node['Relation Name'] && node['Node Type'] !== 'ModifyTable')
  const looked = scans.map(
    (node) => (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
  )
  return {
    scans: scans.map((node) => `${node['Node Type']} ${node['Index Name'] ?? node['Relation Name']}`),
    rows: looked.reduce((sum, rows) => sum + rows, 0),
    pages: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'],
  }
}

function below(node: PlanNode): readonly PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(below)]
}

/**
 * The fewest pages of up to thirty readings, until one is within the bound: where others alter tables meanwhile, the session reads the catalogue again, some
 * forty pages that are not the statement's. Those of a statement that walks are there in each.
 */
export async function fewestPages(
  bound: number,
  read: () => Promise<{ readonly pages: number }>,
): Promise<number> {
  let fewest = Number.POSITIVE_INFINITY
  for (let count = 0; count < 30 && fewest > bound; count++) fewest = Math.min(fewest, (await read()).pages)
  return fewest
}
