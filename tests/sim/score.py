#!/usr/bin/env python3
"""The mutation score of the simulators: faults are planted in the core and in the models, and each
has to be found.

    tests/sim/score.py [--jobs N] [--seeds N] [NAME...]
    tests/sim/score.py --list

Two kinds: those that the programs carry with them (`sim --mutants`), and changes of one place of
the core's source, below, each compiled anew. A fault is found when a schedule violates a promise,
or the core ends its own process; where none does, when a unit test of the core fails. Whoever
survives both is named. So is what ends in any other way, or not at all: nobody can tell then. The
status is 0 when all are found, 1 when not, 64 for a name that is not known.
"""
import argparse
import concurrent.futures
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile

SIM = pathlib.Path(__file__).resolve().parent
ROOT = SIM.parent.parent
CORE = ROOT / 'sidecar' / 'election'
FLAGS = ['-std=c11', '-O1', '-D_GNU_SOURCE', '-DGAVEL_MUTANTS', f'-I{ROOT}/sidecar', f'-I{ROOT}',
         f'-I{ROOT}/tests/unit/election']
PATIENCE = 10  # how much longer than without a fault a program may compute
LEAST_S = 30
VOTES = ['votes', 'votes_checks', 'votes_faults', 'votes_network', 'votes_plan', 'votes_world']
UNIT = ROOT / 'tests' / 'unit' / 'election'
SHARED = ['clocks', 'legal', 'model_store', 'mutants', 'schedule', 'shrink', 'trap']

# name, file, what is there, what is there instead
CHANGES = [
    # margins
    ('no-margin', 'replies.c', 'sent, config->ttl_ns - config->margin_ns)', 'sent, config->ttl_ns)'),
    ('margin-added', 'replies.c', 'sent, config->ttl_ns - config->margin_ns)',
     'sent, config->ttl_ns + config->margin_ns)'),
    ('vouch-loose', 'vouch.c', 'max_ns - min_ns <= margin_ns / 4', 'max_ns - min_ns <= margin_ns * 8'),
    ('vouch-at-once', 'vouch.c', 'arrived_ns - vouch->first_ns < wait_ns',
     'arrived_ns - vouch->first_ns < 0'),
    ('vouch-stale', 'vouch.c', 'sample->arrived_ns - vouch->newest_ns > wait_ns',
     'sample->arrived_ns - vouch->newest_ns > 20 * wait_ns'),
    ('vouch-slow-trips', 'vouch.c', 'round_trip_ns >= margin_ns / 4', 'round_trip_ns >= margin_ns * 100'),
    ('wait-halved', 'election.c', 'election->wait_from_ns + election_wait_ns(election)',
     'election->wait_from_ns + election_wait_ns(election) / 2'),
    ('round-good-for-ttl', 'round.c', 'round->config.ttl_ns - round->config.margin_ns,',
     'round->config.ttl_ns,'),
    # comparisons
    ('end-in-future', 'proof.c', 'reply->prior_end_us >= reply->server_now_us',
     'reply->prior_end_us < reply->server_now_us'),
    ('same-server-always', 'vouch.c', 'return i > 0;', 'return true;'),
    ('lease-over-late', 'lease.c', 'now.boot_ns >= lease->boot_deadline_ns',
     'now.boot_ns >= lease->boot_deadline_ns + 50000000'),
    ('smaller-is-greater', 'lease.c', 'boot_ns < real_ns ? boot_ns : real_ns',
     'boot_ns > real_ns ? boot_ns : real_ns'),
    ('deadline-moves-back', 'lease.c', 'boot_deadline_ns > lease->boot_deadline_ns',
     'boot_deadline_ns != lease->boot_deadline_ns'),
    ('token-equal', 'replies.c', 'reply->token > seen_token && reply->token <= TOKEN_MAX',
     'reply->token <= TOKEN_MAX'),
    ('majority-minus-one', 'quorum.c', 'return quorum->count / 2 + 1;', 'return quorum->count / 2;'),
    ('node-closed', 'quorum.c', 'node->sent.boot_ns + quorum->good_for_ns > rule->open_ns',
     'node->sent.boot_ns > 0'),
    ('gap-ignored', 'quorum.c',
     'return node->held && same && reply->sent.boot_ns - node->sent.boot_ns < quorum->good_for_ns;',
     'return node->held && same;'),
    ('other-node-same', 'quorum.c',
     'return node->held && same && reply->sent.boot_ns - node->sent.boot_ns < quorum->good_for_ns;',
     'return node->held && reply->sent.boot_ns - node->sent.boot_ns < quorum->good_for_ns;'),
    ('half-is-over', 'quorum.c', 'quorum->count - refused < quorum_majority(quorum)',
     'quorum->count == refused'),
    # order
    ('renews-after-leaving', 'election.c',
     'election->leaving != LEAVING_NO && step->now_ns >= election->leave_by_ns) {\n            return;',
     'election->leaving == LEAVING_EXIT) {\n            return;'),
    ('leads-before-wait', 'replies.c',
     '!election->op_raises || !grant_wait_is_over(election, reply->sent.boot_ns)',
     '!election->op_raises && !grant_wait_is_over(election, reply->sent.boot_ns)'),
    ('drain-keeps-view', 'leaving.c', 'step_move(step, STATE_RESIGNING, reason);',
     'election->view.reason = reason;'),
    ('held-before-judged', 'replies.c', 'learn(step); /* this reply is a measurement of the store\'s clock too */',
     'learn(step);\n    proof_held(&election->proof, reply);'),
    # what is missing
    ('no-ttl-learned', 'replies.c', 'election->longest_ttl_ns = reply->longest_ttl_ns;', ''),
    ('held-not-noted', 'proof.c', 'proof->held_seen_us = reply->server_now_us;', ''),
    ('raise-not-shown', 'replies.c', 'election->view.token = reply->token;\n    }', '}'),
    ('no-raise', 'election.c', 'step->actions.raise_token = election->op_raises;', ''),
    ('no-nonce-ended', 'election.c',
     'memcpy(election->ended[slot], election->nonce, NONCE_BYTES);', ''),
    ('latch-not-noticed', 'election.c',
     'bool doubt = lease_is_in_doubt(lease, step->event->now) || told;', 'bool doubt = told && false;'),
    ('late-yes-counts', 'replies.c',
     'if (election->grant != GRANT_HELD) {\n        return; /* the deadline came first: over for good */',
     'if (election->grant == GRANT_NONE) {\n        return;'),
    ('refusal-ignored', 'replies.c', 'case OUTCOME_NO:\n        lose(step);', 'case OUTCOME_NO:'),
    ('handouts-forgotten', 'leaving.c',
     'return app_ns > election->handed_out_until_ns ? app_ns : election->handed_out_until_ns;',
     'return app_ns;'),
    ('no-stand-back', 'attached.c', 'now_ns < election->stand_back_until_ns || ', ''),
    ('no-mark-check', 'election.c', '!election->unproven &&\n                leaving_may_release',
     'leaving_may_release'),
    ('mark-of-waiting-grant', 'election.c', 'grant_wait_is_over(election, step->now_ns) && !election->unproven',
     '!election->unproven'),
    ('mark-after-lease', 'election.c',
     'lease_remaining_ns(&election->view.lease, step->event->now) > 0 &&\n                grant_wait',
     'grant_wait'),
    ('quorum-token-least', 'quorum.c', 'node->token > token) {\n            token',
     '(token == 0 || node->token < token)) {\n            token'),
    ('round-node-proved', 'quorum.c', 'node->proved = doubt == DOUBT_NONE;', 'node->proved = true;'),
    # when it asks
    ('pace-of-ttl', 'pace.c', 'int64_t pace_ns = step->election->config->ttl_ns / 3;',
     'int64_t pace_ns = step->election->config->ttl_ns;'),
    ('pace-late', 'pace.c', 'int64_t at_ns = latest_ns - (latest_ns',
     'int64_t at_ns = latest_ns + pace_ns - (latest_ns'),
    ('pace-never', 'pace.c', 'return at_ns > step->now_ns ? at_ns : latest_ns;', 'return NEVER_NS;'),
    ('pace-at-once', 'pace.c', 'return at_ns > step->now_ns ? at_ns : latest_ns;',
     'return step->now_ns;'),
    ('backoff-none', 'pace.c', 'return delay_ns / 2 + step_jitter_ns(step, delay_ns / 2);',
     'return 0;'),
    ('backoff-endless', 'pace.c', '    if (delay_ns > most_ns) {',
     '    delay_ns <<= step->election->failures;\n    if (delay_ns < 0) {'),
    ('no-jitter', 'pace.c', 'return (int64_t)(number % (uint64_t)range_ns);', 'return 0;'),
    ('jitter-late', 'pace.c', 'return (int64_t)(number % (uint64_t)range_ns);',
     'return (int64_t)(number % 1000 * NS_PER_S);'),
    ('wake-too-late', 'pace.c', 'int64_t soon_ns = step->now_ns + step_jitter_ns(step, NS_PER_MS);',
     'int64_t soon_ns = NEVER_NS / 2;'),
    ('round-seen-forgotten', 'round_judge.c', 'token = round->ask.seen_token + 1;', ''),
    ('round-others-tokens', 'round_judge.c', 'token = node->reply.token + 1;', ''),
    ('round-written-unread', 'round_judge.c',
     'enough && (pending == 0 || now_ns >= round->patience_ns)', 'enough'),
]


def compile_all(folder, names, source):
    for name in names:
        subprocess.run(['cc', *FLAGS, '-c', source / f'{name}.c', '-o', folder / f'{name}.o'],
                       check=True)


class Unsure(Exception):
    """A program has ended in a way that says nothing about the fault."""


def used_s():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(command, most_s):
    """Of its own time, not the machine's: others may be at work."""
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (int(most_s), int(most_s) + 5))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors='replace', check=False, preexec_fn=limit)
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        raise Unsure(f'{command[0].name} does not end within {most_s:.0f} s')
    return done


def play(program, arguments, most_s):
    """None: it survived. Else what was found."""
    done = run([program, *arguments, '--whole'], most_s)
    found = [line for line in done.stdout.splitlines() if line.startswith('VIOLATION in seed ')]
    if done.returncode == 1 and found:
        return found[0]
    if done.returncode != 0 or found:
        last = (done.stdout.strip().splitlines() or ['nothing'])[-1]
        raise Unsure(f'{program.name} ends with status {done.returncode}, and says: {last}')
    return None


class Score:
    """Builds the simulators once, and each changed file of the core after that."""

    def __init__(self, folder, seeds):
        self.folder = folder
        self.seeds = seeds
        sources = [path.stem for path in SIM.glob('*.c')]
        compile_all(folder, sources, SIM)
        self.unit = sorted(path.stem for path in UNIT.glob('test_*.c'))
        compile_all(folder, ['driver', *self.unit], UNIT)
        self.core = [path.stem for path in CORE.glob('*.c')]
        compile_all(folder, self.core, CORE)
        self.most_s = {'sim': 3600, 'votes': 3600, 'unit': 600}
        self.parts = {'sim': [name for name in sources if name not in VOTES],
                      'votes': VOTES + SHARED}

    def link(self, program, name, changed=None, instead=None):
        path = self.folder / f'{program}-{name}'
        core = [instead if part == changed else self.folder / f'{part}.o' for part in self.core]
        parts = [self.folder / f'{part}.o' for part in self.parts[program]]
        subprocess.run(['cc', *parts, *core, '-o', path], check=True)
        return path

    def unit_finds(self, name, active, changed=None, instead=None):
        """The first unit test of the core that fails; None: none does."""
        planted = self.folder / f'{name}-active.c'
        planted.write_text('#include "election/mutant.h"\n'
                           f'enum mutant mutant_active = MUTANT_{active};\n')
        core = [instead if part == changed else self.folder / f'{part}.o' for part in self.core]
        program = self.folder / f'unit-{name}'
        for test in self.unit:
            subprocess.run(['cc', *FLAGS, planted, self.folder / f'{test}.o',
                            self.folder / 'driver.o', *core, '-o', program, '-lcmocka'], check=True)
            done = run([program], self.most_s['unit'])
            if done.returncode > 0 and '[  FAILED  ]' in done.stdout:
                return f'unit test: {test}'
            if done.returncode != 0:
                raise Unsure(f'{test} ends with status {done.returncode}')
        return None

    def judge(self, programs, arguments=()):
        few = {'sim': self.seeds, 'votes': self.seeds // 3}
        for name in ('sim', 'votes'):
            found = play(programs[name], ['--seeds', '1', str(few[name]), *arguments],
                         self.most_s[name])
            if found:
                return found
        return None

    def healthy(self, whole):
        """Finds nothing without a fault, and how long that takes."""
        for name in ('sim', 'votes', 'unit'):
            begun_s = used_s()
            if name == 'unit':
                found = self.unit_finds('whole', 'NO_FAULT')
            else:
                few = self.seeds if name == 'sim' else self.seeds // 3
                found = play(whole[name], ['--seeds', '1', str(few)], self.most_s[name])
            if found:
                sys.exit(f'without any fault planted: {found}')
            self.most_s[name] = LEAST_S + PATIENCE * (used_s() - begun_s)

    def change(self, change):
        name, file, there, instead = change
        text = (CORE / file).read_text()
        if text.count(there) != 1:
            return f'{name}: {file} has {text.count(there)} times: {there}', False
        changed = self.folder / f'{name}.c'
        changed.write_text(text.replace(there, instead))
        target = self.folder / f'{name}.o'
        subprocess.run(['cc', *FLAGS, '-w', '-c', changed, '-o', target], check=True)
        part = pathlib.Path(file).stem
        programs = {program: self.link(program, name, part, target) for program in self.parts}
        return self.told(name, lambda: self.judge(programs) or
                         self.unit_finds(name, 'NO_FAULT', part, target))

    def carried(self, name):
        programs = {program: self.folder / f'{program}-whole' for program in self.parts}
        active = name.upper().replace('-', '_')
        return self.told(name, lambda: self.judge(programs, ['--mutant', name]) or
                         self.unit_finds(name, active))

    @staticmethod
    def told(name, find):
        try:
            found = find()
        except Unsure as what:
            return f'{name}: UNSURE: {what}', False
        return f'{name}: {found or "SURVIVES"}', found is not None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    parser.add_argument('--seeds', type=int, default=6000, help='of one election; a third of votes')
    parser.add_argument('--list', action='store_true', help='the names of all faults')
    parser.add_argument('names', nargs='*', help='these alone')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        score = Score(pathlib.Path(folder), options.seeds)
        whole = {program: score.link(program, 'whole') for program in score.parts}
        carried = subprocess.run([whole['sim'], '--mutants'], capture_output=True, text=True,
                                 check=True).stdout.split()
        known = carried + [change[0] for change in CHANGES]
        if options.list:
            print('\n'.join(known))
            return
        unknown = [name for name in options.names if name not in known]
        if unknown:
            print(f"not known: {', '.join(unknown)}; --list tells what is", file=sys.stderr)
            sys.exit(64)
        score.healthy(whole)
        wanted = options.names or known
        jobs = [pool.submit(score.carried, name) for name in carried if name in wanted]
        jobs += [pool.submit(score.change, change) for change in CHANGES if change[0] in wanted]
        results = [job.result() for job in jobs]
    for text, _ in results:
        print(text)
    found = sum(1 for _, good in results if good)
    by_unit = sum(1 for text, _ in results if ': unit test: ' in text)
    print(f'score: {found} of {len(results)} planted faults found, {found - by_unit} of them by the '
          f'simulators, {by_unit} by unit tests alone')
    sys.exit(0 if found == len(results) else 1)


if __name__ == '__main__':
    main()
