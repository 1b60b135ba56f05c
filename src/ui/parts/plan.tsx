/** The plan of the agent: the tasks that it has written down. */
import { fieldsOfInput } from '../../contract/events/call-title.ts'
import type { ChatRow } from '../state/items.ts'
import { texts } from '../state/preferences.ts'
import { asText, short } from '../text/visible.ts'

/** A map: the agent can call a status `__proto__`, which an object would answer with something that is no text. */
const MARKS: ReadonlyMap<string, string> = new Map([
  ['todo', '○'],
  ['in_progress', '◐'],
  ['done', '✓'],
])

type PlannedTask = { readonly title: string; readonly status: string }

export function Plan({ rows }: { readonly rows: readonly ChatRow[] }) {
  const tasks = planIn(rows)
  if (tasks.length === 0) return null
  const doneCount = tasks.filter(({ status }) => status === 'done').length
  const current = tasks.find(({ status }) => status === 'in_progress')
  return (
    <details class="plan column">
      <summary>
        {texts.value.plan} <span class="number">{`${doneCount}/${tasks.length}`}</span>{' '}
        {current && <span class="quiet">{short(current.title)}</span>}
      </summary>
      <ol>
        {tasks.map(({ title, status }, index) => (
          <li key={index}>
            <span class="shape" aria-hidden="true">
              {MARKS.get(status) ?? '○'}
            </span>
            {short(title, 300)}
          </li>
        ))}
      </ol>
    </details>
  )
}

/** The last list that the agent has written, as far as its rows are loaded. */
function planIn(rows: readonly ChatRow[]): PlannedTask[] {
  const call = rows.findLast(
    (row) =>
      row.kind === 'call' && row.use.name === 'TaskTracker' && fieldsOfInput(row.use.input)['task_list'] !== undefined,
  )
  const list = call?.kind === 'call' ? fieldsOfInput(call.use.input)['task_list'] : undefined
  return Array.isArray(list)
    ? list.map((task: unknown) => {
        const { title, status } = fieldsOfInput(task)
        return { title: asText(title ?? ''), status: asText(status ?? 'todo') }
      })
    : []
}
