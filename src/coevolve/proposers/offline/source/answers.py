"""Methods that get an answer from the model; `$` stands where they depend on other blocks."""

KNOWN = '''
def known(self):
    """The answers to choose from; none where each was the answer of one example only."""
    repeated = len(self.labels) < len(self.examples)
    return self.labels if self.task.labels or repeated else []
'''

CHOICES = '''
def choices(self, question):
    """The answers that similar examples speak for the most."""
    similar = self.similar(question)
    return sorted(self.known(), key=lambda label: -similar[label])[:KEPT]
'''

SIMILAR = '''
def similar(self, question):
    """How much the three most similar examples of each label speak for it."""
    alike = {label: [0.0, 0.0, 0.0] for label in self.labels}
    for (_, label), value in zip(self.examples, self.alike(question), strict=True):
        alike[label].append(value)
    sums = {label: sum(sorted(values)[-3:]) for label, values in alike.items()}
    usual = mean(sums.values()) if any(sums.values()) else 1
    return {label: math.log(value / usual + 0.05) for label, value in sums.items()}
'''

WRITE = '''
def write(self, prompt):
    """What the model writes; a large one is told how to answer by the task itself."""
    if not self.model.completes:
        return self.model(prompt)
    return self.model(prompt, max_tokens=60, stop=[STOP]).strip()
'''

SAMPLE = '''
def write(self, prompt, sample):
    """A sample of what the model writes; a large one is told how by the task itself."""
    if not self.model.completes:
        return self.model(prompt, temperature=WARMTH, sample=sample)
    options = {"max_tokens": 60, "temperature": WARMTH, "stop": [STOP]}
    return self.model(prompt, sample=sample, **options).strip()
'''

FREE = {
    "once": '''
def predict(self, question):
    """The label that the model's own words mean."""
    $find
    return read(self.write(self.prompt($args)), self.known())
''',
    "orders": '''
def predict(self, question):
    """The label that the model's own words mean most often."""
    $find
    prompts = [self.prompt(question, order) for order in self.orders(examples)]
    return most_common(read(self.write(prompt), self.known()) for prompt in prompts)
''',
    "samples": '''
def predict(self, question):
    """The label that most samples of the model's own words mean."""
    $find
    prompt = self.prompt($args)
    written = [self.write(prompt, sample) for sample in range(SAMPLES)]
    return most_common(read(text, self.known()) for text in written)
''',
}

CHOOSE = {
    "once": '''
def predict(self, question):
    """The label that the model chooses; its own words where none is known."""
    $find
    prompt, labels = self.prompt($args), $labels
    return self.model.choose(prompt, labels) if labels else self.write(prompt)
''',
    "orders": '''
def predict(self, question):
    """The label that the model chooses most often; its own words where none is known."""
    $find
    prompts = [self.prompt(question, order) for order in self.orders(examples)]
    labels = $labels
    if not labels:
        return self.write(prompts[0])
    return most_common(self.model.choose(prompt, labels) for prompt in prompts)
''',
}

SCORE = '''
def predict(self, question):
    """The label with the $highest."""
    $find
    labels = $labels
    if not labels:
        return self.write(self.prompt($args))
    if not self.model.gives_scores:
        return self.model.choose(self.prompt($args), labels)
    $opinion = self.$opinion($args, labels)
    $verdict
'''

ALONE = "return max(labels, key=$opinion.get)"
WEIGHED = """similar = self.similar(question)
    return max(labels, key=lambda label: $opinion[label] + TRUST * similar[label])"""

SCORES = {
    "once": '''
def scores(self, $args, labels):
    """The log-probability of each label after the question."""
    return self.model.scores(self.prompt($args), labels)
''',
    "orders": '''
def scores(self, question, examples, labels):
    """The log-probability of each label, on average over orders of the examples."""
    prompts = [self.prompt(question, order) for order in self.orders(examples)]
    found = [self.model.scores(prompt, labels) for prompt in prompts]
    return {label: mean(scores[label] for scores in found) for label in labels}
''',
}

GAIN = '''
def gain(self, $args, labels):
    """How much more than an empty question this one speaks for each label."""
    scores = self.scores($args, labels)
    usual = self.scores($empty, labels)
    return {label: scores[label] - usual[label] for label in labels}
'''

STANDING = '''
def standing(self, $args, labels):
    """How far the score of each label is above its usual one, in standard deviations."""
    scores = self.scores($args, labels)
    return {label: self.standard(label, scores[label]) for label in labels}

def standard(self, label, score):
    """A score on the label's own scale; a new label is compared with all the others."""
    usual = [scores[label] for _, scores in self.asked if label in scores]
    if len(usual) < 2:
        usual = [known for _, scores in self.asked for known in scores.values()]
    return (score - mean(usual)) / (pstdev(usual) or 1) if usual else score

def probe(self, question, answer):
    """Note the scores of the labels after a question, for one question of each label."""
    labels, seen = self.known()[:WIDEST], [label for label, _ in self.asked]
    wanted = answer not in seen and len(seen) < PROBES
    if labels and wanted and self.model.gives_scores:
        $find
        self.asked.append([answer, self.scores($args, labels)])
'''

READ = {
    "first": '''
def read(text, labels):
    """The label that a text names first; the text itself if it names none."""
    said = text.lower()
    named = [label for label in labels if label.lower() in said]
    return min(named, key=lambda n: (said.index(n.lower()), -len(n)), default=text)
''',
    "closest": '''
def read(text, labels):
    """The label that has most letters in common with a text; the text if there is none."""
    return max(labels, key=lambda label: common(label, text), default=text)


def common(label, text):
    """How much of a label is found in a text, from 0 to 1."""
    matcher = SequenceMatcher(None, label.lower(), text.lower(), autojunk=False)
    sizes = [block.size for block in matcher.get_matching_blocks()]
    return sum(size for size in sizes if size > 1) / len(label)
''',
}

MOST_COMMON = '''
def most_common(answers):
    """The answer given most often, the first of equals."""
    return Counter(answers).most_common(1)[0][0]
'''
