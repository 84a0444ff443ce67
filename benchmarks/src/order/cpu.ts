import { readdir, readFile } from 'node:fs/promises'

/**
 * Milliseconds of processor time that this process and a server have had so far; the server is told by one of its backends. Others on the machine do not change it, as
 * they do the time that something takes. NaN where there is no /proc.
 */
export async function cpuMs(backend: number): Promise<number> {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000 + (await serverMs(backend).catch(() => Number.NaN))
}

const msPerTick = 10

interface Stat {
  readonly parent: number
  readonly own: number
  readonly endedChildren: number
}

/** Of the server alone. */
export async function serverMs(backend: number): Promise<number> {
  const { parent: postmaster } = await statOf(backend)
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const stats = await Promise.all(pids.map((pid) => statOf(pid).catch(() => null)))
  const children = stats.reduce((sum, stat) => sum + (stat?.parent === postmaster ? stat.own : 0), 0)
  const { own, endedChildren } = await statOf(postmaster)
  return (own + endedChildren + children) * msPerTick
}

/** Ticks, from behind the name, which may hold anything. */
async function statOf(pid: number): Promise<Stat> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8')
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  const at = (index: number): number => fields[index] ?? 0
  return { parent: at(1), own: at(11) + at(12), endedChildren: at(13) + at(14) }
}
