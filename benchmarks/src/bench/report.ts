import { cpus, totalmem } from 'node:os'
import type { Result } from './metrics.ts'
import type { Peers } from './peers.ts'
import type { Ratios } from './ratios.ts'
import { ratiosOf } from './ratios.ts'
import type { BenchServer } from './server.ts'

/** Everything that a run is known by: what is printed with `--json` and kept in `results/`. */
export interface Report {
  readonly startedAt: string
  readonly mode: 'full' | 'quick'
  /** As many as were made of what had most. */
  readonly rounds: number
  readonly machine: string
  readonly node: string
  readonly server: string
  readonly settings: Readonly<Record<string, string>>
  readonly versions: Readonly<Record<string, string>>
  readonly ratios: Ratios
  readonly results: readonly Result[]
}

interface ReportInput {
  readonly startedAt: Date
  readonly isQuick: boolean
  readonly peers: Peers
  readonly server: BenchServer
  readonly results: readonly Result[]
}

export function reportOf({ startedAt, isQuick, peers, server, results }: ReportInput): Report {
  return {
    startedAt: startedAt.toISOString(),
    mode: isQuick ? 'quick' : 'full',
    rounds: Math.max(0, ...results.flatMap(({ lines }) => lines.map((line) => line.rounds.length))),
    machine: `${cpus().length} × ${cpus()[0]?.model.trim() ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GB`,
    node: peers.nodeVersion,
    server: server.version,
    settings: server.settings,
    versions: peers.versions,
    ratios: ratiosOf(results),
    results,
  }
}
