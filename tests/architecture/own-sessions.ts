// Test files run beside each other on one server. Whoever asks it who waits, or ends somebody's session, has to say whose sessions he means: else he is answered for
// another file, or breaks it, and only on a busy machine. As functions over texts, so that its own tests can make some up.
import type { Sources } from './rules.ts'

/** A query that no form below fits, and why it is safe all the same. */
export interface Exception {
  readonly file: string
  /** A piece of the query. */
  readonly text: string
  readonly reason: string
}

const asked = /pg_stat_activity|pg_locks|pg_terminate_backend|pg_cancel_backend/

// A template, in which `${…}` may hold another string; a quoted string; a comment.
const textOrComment =
  /`(?:\\[\s\S]|\$\{(?:[^{}]|\{[^{}]*\})*\}|[^`\\])*`|(['"])(?:\\.|(?!\1)[^\\\n])*\1|\/\/[^\n]*|\/\*[\s\S]*?\*\//g

// The name of the file's own sessions, as a value: see `useDatabase`.
const byName =
  /\bapplication_name\s*(?:=|like)\s*\$\d|\bapplication_name\s+in\s*\(\$\d|starts_with\((?:\w+\.)?application_name,\s*\$\d\)/
// One session. Where its pid comes from is a question to the query that found it.
const byPid = /pg_(?:terminate|cancel)_backend\(\$\d|\bpid\s*=\s*pg_backend_pid\(\)/
// A table, which the connection finds in the schema of the file.
const byTable = /\brelation\s*=\s*(?:'\w+'|\$\d(?:::text)?)::regclass/

/** Whoever gives the name gives that of the file, or that of a process which the file has started. */
const ownName = /\bapplicationName\b|\bname\b/

export function sessionViolations(sources: Sources, exceptions: readonly Exception[]): readonly string[] {
  const queries = [...sources].flatMap(([file, text]) => queriesOf(file, text))
  const isExcepted =
    (query: Query) =>
    ({ file, text }: Exception) =>
      file === query.file && query.text.includes(text)
  return [
    ...queries.filter((query) => !namesOwn(query) && !exceptions.some(isExcepted(query))).map(complaint),
    ...exceptions
      .filter((one) => !queries.some((query) => !namesOwn(query) && isExcepted(query)(one)))
      .map(({ file, text }) => `${file} has no query that needs the exception "${text}"`),
  ]
}

interface Query {
  readonly file: string
  readonly line: number
  readonly text: string
  /** What follows it, up to the end of the first list: its values. */
  readonly values: string
}

function queriesOf(file: string, source: string): readonly Query[] {
  const found: Query[] = []
  const code = source.replace(textOrComment, (text: string, _quote: unknown, at: number) => {
    if (text.startsWith('/') || !asked.test(text)) return blank(text)
    const values = source.slice(at + text.length).match(/^[^\]]*\]/)?.[0] ?? ''
    found.push({ file, line: lineAt(source, at + text.search(asked)), text, values })
    return blank(text)
  })
  // Read wrongly, for example behind a quote in a regular expression: better a complaint than a query that nobody looks at.
  const stray = code.search(asked)
  return stray === -1 ? found : [...found, { file, line: lineAt(source, stray), text: '', values: '' }]
}

function namesOwn({ text, values }: Query): boolean {
  if (byPid.test(text) || byTable.test(text)) return true
  return byName.test(text) && ownName.test(values)
}

function complaint({ file, line }: Query): string {
  return `${file}:${line} asks about sessions, and does not say that it means its own`
}

function lineAt(source: string, at: number): number {
  return source.slice(0, at).split('\n').length
}

/** As long as it was, so that lines can be counted. */
function blank(text: string): string {
  return text.replaceAll(/[^\n]/g, ' ')
}
