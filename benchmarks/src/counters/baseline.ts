import { readFile, writeFile } from 'node:fs/promises'
import type { Measurement, Measurements } from './measurement.ts'

export interface Baseline {
  /** Which server it was made on: WAL records change their sizes between major releases. */
  readonly server: string
  readonly scenarios: Measurements
}

// The same file from src/counters/ and from dist/counters/.
const file = new URL('../../baseline.json', import.meta.url)

export async function readBaseline(): Promise<Baseline> {
  return JSON.parse(await readFile(file, 'utf8')) as Baseline
}

export async function writeBaseline({ server, scenarios }: Baseline): Promise<void> {
  const entries = Object.entries(scenarios).map(([name, scenario]) => [name, onlyMeasured(scenario)])
  await writeFile(file, `${JSON.stringify({ server, scenarios: Object.fromEntries(entries) }, null, 2)}\n`)
}

function onlyMeasured({ workload, messages, totals }: Measurement): Measurement {
  return { workload, messages, totals }
}
