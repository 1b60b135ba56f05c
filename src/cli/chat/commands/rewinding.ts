/** Commands that show what the agent has changed, and take back messages with what came after them. */
import type { EventOf } from '../../../contract/events/event.ts'
import type { RewindOutcome } from '../../../contract/rewind.ts'
import { ageOf } from '../../conversation/describe-conversation.ts'
import type { ChatSession } from '../chat-session.ts'
import { cleanLine, cleanText } from '../state/clean-text.ts'
import { typedMessage } from '../state/shell-command.ts'
import type { ChatContext } from './command.ts'

/** Messages in the list of `/rewind`. */
const LISTED = 30
const MAX_FILES = 100
const MAX_LINES = 200
/** Paths that a sentence names. */
const NAMED = 5

type Message = EventOf<'UserMessage'>
type Changes = NonNullable<EventOf<'Result'>['changes']>
type Parts = { readonly files: boolean; readonly conversation: boolean }

export async function showChanges({ session }: ChatContext, path: string): Promise<void> {
  const query = { from: 'run', limit: MAX_FILES, ...(path !== '' && { path }) }
  const { items, files, added, removed } = await session.conversation.files.diff(query)
  if (files === 0) return session.say('The last run has changed no files.')
  const head = `The last run has changed ${count(files, 'file')}: ${added} lines added, ${removed} removed.`
  const patches = items.flatMap(({ patch, path: name, status, binary }) =>
    patch === undefined || binary ? [`${status} ${name}`] : patch.trimEnd().split('\n'),
  )
  const remainingLines = patches.length - MAX_LINES
  const more = remainingLines > 0 ? [`… ${remainingLines} more lines; /diff PATH shows one file or directory.`] : []
  session.say(cleanText([head, ...patches.slice(0, MAX_LINES), ...more].join('\n')))
}

/** Takes the last message back. `force`: also if somebody else has changed files since. */
export async function undo({ session }: ChatContext, argument: string): Promise<void> {
  if (argument !== '' && argument !== 'force') throw new Error('Give /undo, or /undo force.')
  const [{ message } = {}] = await messagesOf(session, 1)
  if (!message) throw new Error('There is no message to take back.')
  const { file_checkpointing: files = false } = await session.conversation.get()
  await goBack(session, message, { files, conversation: true, force: argument === 'force' })
}

export async function rewind({ session, pick }: ChatContext): Promise<void> {
  const messages = await messagesOf(session, LISTED)
  if (messages.length === 0) throw new Error('There is no message to take back.')
  pick({
    title: 'Which message is taken back, with all that came after it?',
    text: '',
    options: messages.map(({ message, changes }) => ({
      label: textOf(message),
      description: [ageOf({ updated_at: message.timestamp }), ...changes.map(sizeOf)].join(' · '),
    })),
    isMultiple: false,
    hint: 'Enter or a number shows what would change; Esc closes the list',
    onChoose: ([at = 0]) => {
      const message = messages[at]?.message
      if (message) void choose(session, pick, message).catch((error: unknown) => session.fail(error))
    },
  })
}

async function choose(session: ChatSession, pick: ChatContext['pick'], message: Message): Promise<void> {
  const { last_seq, file_checkpointing: hasFiles = false } = await session.conversation.get()
  const body = { to_seq: message.seq - 1, last_seq }
  const plan = await session.conversation.rewind({ ...body, ...(hasFiles && { files: true }) }, { dry_run: true })
  const since = plan.files?.changed_since ?? []
  const ways: (Parts & { readonly label: string; readonly description: string })[] = [
    ...(hasFiles
      ? [
          { label: 'The conversation and the files', description: effectOn(plan), conversation: true, files: true },
          { label: 'Only the files', description: effectOn(plan), conversation: false, files: true },
        ]
      : []),
    { label: 'Only the conversation', description: 'The files stay.', conversation: true, files: false },
  ]
  pick({
    title: `What goes back to before "${textOf(message)}"?`,
    text: since.length > 0 ? `Changed since by somebody else, and replaced, too: ${namesOf(since)}.` : '',
    options: ways,
    isMultiple: false,
    hint: 'Enter or a number does it; Esc changes nothing',
    onChoose: ([at = 0]) => {
      const way = ways[at]
      // What others have changed was shown.
      if (way)
        void goBack(session, message, { ...way, force: way.files && since.length > 0 }).catch((error: unknown) =>
          session.fail(error),
        )
    },
  })
}

async function goBack(
  session: ChatSession,
  message: Message,
  { files, conversation, force }: Parts & { readonly force: boolean },
): Promise<void> {
  const { last_seq } = await session.conversation.get()
  const outcome = await session.conversation.rewind({
    to_seq: message.seq - 1,
    last_seq,
    conversation,
    ...(files && { files: true }),
    ...(force && { force: true }),
  })
  const back = conversation ? [`Taken back: ${textOf(message)}`] : []
  const failedFiles = outcome.files?.failed ?? []
  const failureLines = failedFiles.length > 0 ? [`Not restored: ${namesOf(failedFiles.map(({ path }) => path))}.`] : []
  const running = outcome.processes?.length ? [`${count(outcome.processes.length, 'process', 'es')} still run.`] : []
  session.say([...back, ...(files ? [effectOn(outcome)] : []), ...failureLines, ...running].join('\n'))
}

/** The latest first, without those that were taken back; each with what the runs after it have changed. */
async function messagesOf(session: ChatSession, most: number) {
  const types = ['UserMessage', 'MessageWithdrawn', 'Result'] as const
  const withdrawn = new Set<number>()
  const foundChanges: { readonly message: Message; readonly changes: readonly Changes[] }[] = []
  let changes: Changes[] = []
  for await (const event of session.conversation.listEvents({ types, order: 'desc', active: true })) {
    if (event.type === 'Result') changes.push(...(event.changes ? [event.changes] : []))
    else if (event.type === 'MessageWithdrawn') withdrawn.add(event.message_seq)
    else if (!withdrawn.has(event.seq)) {
      foundChanges.push({ message: event, changes })
      changes = []
    }
    if (foundChanges.length === most) break
  }
  return foundChanges
}

const sizeOf = ({ files, added, removed }: Changes): string => `${count(files, 'file')} +${added} -${removed}`

function effectOn({ files }: RewindOutcome): string {
  if (!files) return ''
  const { changed, removed } = files
  if (changed.length + removed.length === 0) return 'No file changes.'
  const restoredLines = changed.length > 0 ? [`${count(changed.length, 'file')} restored: ${namesOf(changed)}.`] : []
  const removedLines = removed.length > 0 ? [`${count(removed.length, 'file')} removed: ${namesOf(removed)}.`] : []
  return [...restoredLines, ...removedLines].join(' ')
}

const namesOf = (paths: readonly string[]): string =>
  cleanLine(paths.slice(0, NAMED).join(', ')) + (paths.length > NAMED ? ` and ${paths.length - NAMED} more` : '')

const textOf = ({ content }: Message): string =>
  cleanLine(typedMessage(content.map((part) => (part.type === 'text' ? part.text : '[image]')).join(' '))).slice(0, 80)

const count = (number: number, noun: string, plural = 's'): string => `${number} ${noun}${number === 1 ? '' : plural}`
