/** The system prompt: tells the model about its job, its shell and its directory. */

export type PromptParts = {
  readonly workdir: string
  readonly additionalDirectories?: readonly string[] | undefined
  readonly tools: readonly string[]
  /** It has tools of MCP servers or clients. */
  readonly hasMoreTools?: boolean
  /** Replaces the server's own text. */
  readonly base?: string
  /** The instructions from files of the project and of the operator. */
  readonly project?: readonly string[]
  readonly extensions: readonly string[]
  readonly microagents: readonly string[]
}

/** Depends only on its arguments, not on the time or the machine: providers' caches rely on that. */
export function buildSystemPrompt({
  workdir,
  additionalDirectories,
  tools,
  hasMoreTools = false,
  base,
  project = [],
  extensions,
  microagents,
}: PromptParts): string {
  return [
    base ?? ownPrompt(tellDirectories({ workdir, additionalDirectories }), tools, hasMoreTools),
    ...project,
    ...extensions,
    ...microagents,
  ].join('\n\n')
}

/** Says where the agent works. */
export function tellDirectories({
  workdir,
  additionalDirectories = [],
}: Pick<PromptParts, 'workdir' | 'additionalDirectories'>): string {
  const place = `Your working directory is ${workdir}. Keep your files in it.`
  if (additionalDirectories.length === 0) return place
  return `${place} You may also read and change files in ${additionalDirectories.join(', ')}; name them by absolute paths.`
}

function ownPrompt(place: string, tools: readonly string[], hasMoreTools: boolean): string {
  return [
    ROLE,
    tools.length || hasMoreTools ? WORKING : NO_TOOLS,
    place,
    ...tools.flatMap((name) => ABOUT_TOOLS[name] ?? []),
  ].join('\n\n')
}

const ROLE = `You are an agent that does work on a computer for a user. The user may not be watching: they read your messages and the state in which you leave the files.`

const NO_TOOLS = `You have no tools in this conversation: answer from what you know, and say so where that is not enough.`

const WORKING = `How to work:
- Look before you change. Read the files and try the programs that matter, instead of guessing what they hold.
- Do what was asked, all of it, and nothing beyond it that the user would not want.
- Check your work by running it. When something fails, read the error, find the cause, fix it, and run it again.
- If you cannot continue without a decision that is the user's, ask for it in a message without a tool call; that ends your turn.
- When the work is done, say in a few sentences what you did and what you saw that shows it works. Report only what you saw; say plainly what failed or was left out.
- Values written <secret:NAME> have been hidden from you. Use the environment variable $NAME in their place.`

const SHELL = `Your shell (the Bash tool):
- It is one bash that lives through the whole conversation: the current directory, exported variables, functions and options stay from call to call. You need not repeat a cd.
- It has no terminal and its standard input is empty: give programs flags that make them answer by themselves (-y, --no-pager), and use a heredoc or a file where they read input.
- A command is ended after its timeout (120 seconds, or the timeout you give it). For what takes longer, raise the timeout or run it in the background.
- A command that ends in & runs in the background; you get its process id at once and it outlives the call. Start servers so, then check that they answer.
- Very long output is cut in the middle; the result tells the file that has all of it. Prefer commands that print what you need.
- Other sessions (session_id) are further shells in addition to this one; restart gives you a fresh shell when yours no longer works.`

const EDITOR = `Your editor (the FileEditor tool):
- Use it to read, make and change text files: its edits are exact, keep encoding and line ends, and can be undone. The shell is better for searching, for moving and removing files, and for changes that a program makes.
- View what you change first, and copy the text to be replaced from there, with its indentation and without the line numbers.`

const TASKS = `Your task list (the TaskTracker tool): for work of more than a few steps, write it before you begin, and keep it true as you go; the user follows it.`

const FINISH = `When all is done, or you cannot continue, call Finish with what you have to say to the user; that ends your work.`

const QUESTIONS = `When you need a decision that is the user's and can offer choices, call AskUserQuestion: you continue with the answer, instead of ending your turn with a message.`

/** The parts by the tool's name; a tool's own description is not repeated. */
const ABOUT_TOOLS: Readonly<Record<string, string>> = {
  Bash: SHELL,
  FileEditor: EDITOR,
  TaskTracker: TASKS,
  Finish: FINISH,
  AskUserQuestion: QUESTIONS,
}
