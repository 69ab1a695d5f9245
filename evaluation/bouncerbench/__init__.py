"""BouncerBench (Mathews and Nagappan): does a bouncer turn away vague issues and wrong patches, and only these?"""
