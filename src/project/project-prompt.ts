/** The part of the system prompt that comes from project settings. Made once: later requests have it unchanged. */
import type { ProjectEntry, ProjectSettings } from '../contract/project/project-settings.ts'
import type { LoadedProject } from './load-project.ts'
import type { MemoryText } from './memory.ts'

/** The tools that the agent has: without them, their lists are of no use. */
export function projectPrompt({ settings, memory }: LoadedProject, tools: readonly string[]): string[] {
  return [
    ...memoryPrompt(memory),
    ...(tools.includes('Skill') ? [listOf(SKILLS, offeredEntries(settings.skills), '')] : []),
    ...(tools.includes('SlashCommand') ? [listOf(COMMANDS, offeredEntries(settings.commands), '/')] : []),
  ]
}

/** The entries that an agent can use by itself. */
export const offeredEntries = (entries: readonly ProjectEntry[]): readonly ProjectEntry[] =>
  entries.filter((entry) => !entry.user_only)

/** The tools that the settings call for. */
export function projectTools({ skills, commands }: Pick<ProjectSettings, 'skills' | 'commands'>): string[] {
  return [
    ...(offeredEntries(skills).length > 0 ? ['Skill'] : []),
    ...(offeredEntries(commands).length > 0 ? ['SlashCommand'] : []),
  ]
}

function memoryPrompt(memory: readonly MemoryText[]): string[] {
  if (memory.length === 0) return []
  return [INSTRUCTIONS, ...memory.map(({ file, text }) => `## ${headingOf(file)}\n\n${text}`)]
}

const INSTRUCTIONS = `# Instructions from files

These files were read when the conversation began; each has its own heading. Follow them as far as they fit what the user asks for.`

function headingOf({ path, source, imported_by: importer }: MemoryText['file']): string {
  const of =
    source === 'user'
      ? 'of the operator of this server'
      : source === 'local'
        ? 'of the user, for this project'
        : 'of the project'
  return importer === undefined ? `${path} (${of})` : `${path} (imported by ${importer})`
}

const SKILLS = `# Skills

A skill has instructions for a kind of task. Before you begin a task that one of them is for, read it with the Skill tool.`

const COMMANDS = `# Slash commands

Run one with the SlashCommand tool when the user asks for it or its description fits the task. If the user's message already has the text of a command, follow it instead.`

function listOf(heading: string, entries: readonly ProjectEntry[], prefix: string): string {
  const lines = entries.map(({ name, description, argument_hint: hint }) => {
    const words = `${prefix}${name}${hint === undefined ? '' : ` ${hint}`}`
    return description === '' ? `- ${words}` : `- ${words}: ${description}`
  })
  return `${heading}\n\n${lines.join('\n')}`
}
